//! Files: diff of two revisions, file history, and blame.

use retake_model::content::ContentId;
use retake_model::id::TakeId;
use retake_model::path::RootPath;
use retake_timeline::{
    Blame, BlameLine, Comparison, DEFAULT_CONTEXT, Detail, DiffOptions, FOLDER, FileDiff, FileLogItem,
    LineOrigin, NamedFiles,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{MAX_PAGE, Page, ThreadPath, cursor, invalid_cursor, limit};
use super::file_common::root_path;
use crate::endpoint::{Answer, Call, Endpoint, get};
use crate::problem::{Code, Problem};

const GROUP: &str = "Files";

/// Maximum context lines around a change.
const MAX_CONTEXT: usize = 1000;
/// Maximum lines per page of blame.
const MAX_LINES: usize = 10_000;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/diff", diff).about(
            GROUP,
            "Compare the files of two revisions",
            "A revision is a version, the name of a saved version, `turn:NUMBER`, `take:NAME`, `folder`, or a prefix of a \
             snapshot id. By default compares the folder with the last state that the thread's agent or a move (undo, redo, jump) \
             left; a turn as `from` alone, with the files before it. Reading the folder records your edits.",
        ),
        get("/v1/threads/{thread}/changes", changes).about(
            GROUP,
            "List changes of files",
            "Newest first. With `path`, the changes of that file or folder by all threads of the project, across renames; \
             without, all changes of files by this thread.",
        ),
        get("/v1/threads/{thread}/blame", blame).about(
            GROUP,
            "Show the origin of each line of a file",
            "The operation and thread that wrote it, and when. Lines restored by an undo, redo, jump, restore or switch \
             keep their original author; lines without an origin existed before Retake's first snapshot.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The first revision.
    from: Option<String>,
    /// The second revision; `folder` by default.
    to: Option<String>,
    /// Show the changes of this version or `turn:NUMBER`, instead of `from` and `to`.
    of: Option<String>,
    /// Only this path and paths below it.
    path: Option<String>,
    /// Name of the added root that contains `path`.
    root: Option<String>,
    /// Level of detail for each file.
    #[serde(default)]
    detail: DiffDetail,
    /// Context lines around a change: 0 to 1000, 3 by default.
    #[schemars(range(min = 0, max = 1000))]
    context: Option<usize>,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// Page size in files: 1 to 500, 100 by default. A page with large diffs has fewer.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DiffDetail {
    /// The kind of change only.
    Paths,
    /// The number of added and removed lines.
    Counts,
    /// The changed lines.
    #[default]
    Hunks,
}

/// A page of the differences between two revisions.
#[derive(Serialize, JsonSchema)]
struct Diff {
    /// The first revision.
    from: NamedFiles,
    /// The second revision.
    to: NamedFiles,
    /// Number of files that differ.
    count: u64,
    /// Paths left out of the changes of a turn: they changed meanwhile, by hand or by another program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outside_turn: Vec<RootPath>,
    #[serde(flatten)]
    page: Page<FileDiff>,
}

fn diff(call: &Call<'_, ThreadPath, DiffQuery>) -> Result<Answer<Diff>, Problem> {
    let (thread, query) = (call.path.thread, &call.query);
    let limit = limit(query.limit, 100, MAX_PAGE)?;
    let context = match query.context {
        Some(lines) if lines > MAX_CONTEXT => {
            return Err(Problem::invalid("context must be from 0 to 1000"));
        }
        lines => lines.unwrap_or(DEFAULT_CONTEXT),
    };
    let path = query.path.as_deref().map(|path| root_path(query.root.as_deref(), path)).transpose()?;
    let cursor = query.cursor.as_deref().map(DiffCursor::read).transpose()?;
    let revisions = call.revisions(thread, query.take)?;
    let Comparison { from, to, changed } = match (&query.of, &query.from, &query.to) {
        (Some(version), None, None) => revisions.of(version)?,
        (Some(_), _, _) => return Err(Problem::refused("give either `of`, or `from` and `to`")),
        (None, from, to) => revisions.between(from.as_deref(), to.as_deref())?,
    };
    let start = match cursor {
        Some(cursor) if (cursor.before, cursor.after) != (from.snapshot, to.snapshot) => {
            let detail = "the files changed since the last page; start again without a cursor";
            return Err(Problem::new(Code::Conflict, detail));
        }
        Some(cursor) => cursor.index,
        None => 0,
    };
    let detail = match query.detail {
        DiffDetail::Paths => Detail::Paths,
        DiffDetail::Counts => Detail::Counts,
        DiffDetail::Hunks => Detail::Hunks(context),
    };
    let question = DiffOptions { paths: path.into_iter().collect(), changed, detail };
    let reader = call.service.timeline.read()?;
    let version = reader.thread(thread)?.summary.version;
    let found = reader.snapshot(from.snapshot).changes_page(to.snapshot, &question, start, limit)?;
    let index = start.saturating_add(found.files.len());
    let next = DiffCursor { before: from.snapshot, after: to.snapshot, index };
    let next = ((index as u64) < found.count).then(|| next.to_string());
    let page = Page { items: found.files, next };
    Ok(Answer::at(Diff { from, to, count: found.count, outside_turn: found.outside_turn, page }, version))
}

/// A cursor into the differences of two snapshots.
#[derive(Debug, PartialEq, Eq)]
struct DiffCursor {
    before: ContentId,
    after: ContentId,
    index: usize,
}

impl std::fmt::Display for DiffCursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.before, self.after, self.index)
    }
}

impl DiffCursor {
    fn read(text: &str) -> Result<Self, Problem> {
        let read = || {
            let mut parts = text.split('.');
            let (before, after) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let index = parts.next()?.parse().ok()?;
            parts.next().is_none().then_some(Self { before, after, index })
        };
        read().ok_or_else(invalid_cursor)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangesQuery {
    /// Only changes of this file, or below this folder.
    path: Option<String>,
    /// Name of the added root that contains `path`.
    root: Option<String>,
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

fn changes(call: &Call<'_, ThreadPath, ChangesQuery>) -> Result<Answer<Page<FileLogItem>>, Problem> {
    let (thread, query) = (call.path.thread, &call.query);
    let limit = limit(query.limit, 50, MAX_PAGE)?;
    let reader = call.service.timeline.read()?;
    let row = reader.thread(thread)?;
    let page = match &query.path {
        Some(path) => {
            let path = root_path(query.root.as_deref(), path)?;
            let before = cursor::<u64>(query.cursor.as_deref())?;
            let before = before.map(|before| i64::try_from(before).unwrap_or(i64::MAX));
            let log = reader.project(row.home).file_log(&path, before, limit)?;
            Page { items: log.operations, next: log.next.map(|next| next.to_string()) }
        }
        None if query.root.is_some() => return Err(Problem::refused("`root` needs a `path`")),
        None => {
            let from = query.cursor.as_deref().map(operation_and_path).transpose()?;
            let found = reader.files(thread).changes(from, limit)?;
            let next = found.next.map(|(sequence, path)| format!("{sequence}.{path}"));
            Page { items: found.items, next }
        }
    };
    Ok(Answer::at(page, row.summary.version))
}

/// Parses a cursor into the file changes of a thread: an operation, and how many of its paths to skip.
fn operation_and_path(cursor: &str) -> Result<(i64, usize), Problem> {
    let read = || {
        let (sequence, path) = cursor.split_once('.')?;
        Some((sequence.parse().ok()?, path.parse().ok()?))
    };
    read().ok_or_else(invalid_cursor)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlameQuery {
    /// The file.
    path: String,
    /// Name of the added root that contains it.
    root: Option<String>,
    /// The revision: a version, a saved name, `turn:NUMBER`, `take:NAME`, `folder` (the default) or a snapshot id.
    at: Option<String>,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// Page size in lines: 1 to 10000, 1000 by default.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<usize>,
    /// `next` of the previous page: its last line.
    cursor: Option<String>,
}

/// A page of the lines of a file, each with its origin.
#[derive(Serialize, JsonSchema)]
struct BlamePage {
    /// The revision.
    at: NamedFiles,
    /// Number of lines of the file.
    count: u64,
    /// The operations that wrote these lines, oldest first.
    origins: Vec<LineOrigin>,
    #[serde(flatten)]
    page: Page<BlameLine>,
}

fn blame(call: &Call<'_, ThreadPath, BlameQuery>) -> Result<Answer<BlamePage>, Problem> {
    let query = &call.query;
    let limit = limit(query.limit, 1000, MAX_LINES)?;
    let path = root_path(query.root.as_deref(), &query.path)?;
    let behind = cursor(query.cursor.as_deref())?.unwrap_or(0);
    let revisions = call.revisions(call.path.thread, query.take)?;
    let at = revisions.find(query.at.as_deref().unwrap_or(FOLDER))?;
    let reader = call.service.timeline.read()?;
    let Blame { origins, lines, .. } = reader.files(revisions.thread.summary.id).blame(&path, &at)?;
    let count = lines.len() as u64;
    let items: Vec<BlameLine> = lines.into_iter().filter(|line| line.number > behind).take(limit).collect();
    let next = items.last().map(|last| last.number).filter(|last| *last < count);
    let page = Page { items, next: next.map(|last| last.to_string()) };
    let version = reader.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(BlamePage { at, count, origins, page }, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_other_text_is_refused() {
        let id = |byte| ContentId::from_bytes([byte; 32]);
        for index in [0, 7, usize::MAX] {
            let cursor = DiffCursor { before: id(1), after: id(255), index };
            assert_eq!(DiffCursor::read(&cursor.to_string()).ok(), Some(cursor));
        }
        let whole = DiffCursor { before: id(1), after: id(2), index: 3 }.to_string();
        for wrong in ["", "..", "1.2.3", &whole[1..], &format!("{whole}.4"), &whole.replace(".3", ".-3")] {
            assert!(DiffCursor::read(wrong).is_err(), "{wrong}");
        }
        for (text, expected) in
            [("12.3", Some((12, 3))), ("12", None), ("a.b", None), ("1.2.3", None), ("", None)]
        {
            assert_eq!(operation_and_path(text).ok(), expected, "{text}");
        }
    }
}
