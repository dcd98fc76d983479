//! The files of a thread at a revision: list a folder, read a file.

use data_encoding::BASE64;
use retake_model::id::TakeId;
use retake_model::path::TreePath;
use retake_timeline::{CapturedFile, Depth, FOLDER, FileFacts, FilePiece, ListOptions, NamedFiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Page, ThreadPath, invalid_cursor, limit};
use super::file_common::root_path;
use crate::endpoint::{Answer, Call, Endpoint, get};
use crate::problem::{Code, Problem};

const GROUP: &str = "Files";

/// Maximum page size.
const MAX_FILES: usize = 1000;
/// Maximum bytes of a file in one response.
const CHUNK_BYTES: u64 = 1024 * 1024;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/workspace/files", list).about(
            GROUP,
            "List files at a revision",
            "The contents of a folder, sorted by name; with `deep`, also of its subfolders. Name the revision as for \
             `diff`; the default, `folder`, reads the folder and records your edits.",
        ),
        get("/v1/threads/{thread}/workspace/file", show).about(
            GROUP,
            "Read a file at a revision",
            "As text, or in base64 if it is binary; at most 1 MiB per request. `next` is the `offset` of the rest.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The revision: a version, a saved name, `turn:NUMBER`, `take:NAME`, `folder` (the default) or a snapshot id.
    at: Option<String>,
    /// The folder to list; the root by default.
    path: Option<String>,
    /// Name of the added root; by default the project's folder.
    root: Option<String>,
    /// Also list the contents of subfolders.
    #[serde(default)]
    deep: bool,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// Page size: 1 to 1000, 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// `next` of the previous page: its last path.
    cursor: Option<String>,
}

/// A page of files.
#[derive(Serialize, JsonSchema)]
struct Files {
    /// The revision.
    at: NamedFiles,
    #[serde(flatten)]
    page: Page<CapturedFile>,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<Files>, Problem> {
    let query = &call.query;
    let root = query.root.as_deref().unwrap_or_default();
    let folder = query.path.as_deref().map(|path| root_path(None, path)).transpose()?.map(|path| path.path);
    let after = query.cursor.as_deref().map(|cursor| parse_cursor(cursor, folder.as_ref())).transpose()?;
    let limit = limit(query.limit, 200, MAX_FILES)?;
    let revisions = call.revisions(call.path.thread, query.take)?;
    let at = revisions.find(query.at.as_deref().unwrap_or(FOLDER))?;
    let reader = call.service.timeline.read()?;
    let question = ListOptions {
        root,
        folder: folder.as_ref(),
        depth: if query.deep { Depth::All } else { Depth::One },
        after: after.as_ref(),
        limit,
    };
    let found = reader.snapshot(at.snapshot).list(question)?;
    let found = found.ok_or_else(|| Problem::not_found("no such folder at this revision"))?;
    let next = found.items.last().filter(|_| found.more).map(|last| last.path.path.to_string());
    let version = reader.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(Files { at, page: Page { items: found.items, next } }, version))
}

/// Parses a cursor: the last path of the previous page.
fn parse_cursor(cursor: &str, folder: Option<&TreePath>) -> Result<TreePath, Problem> {
    let path: TreePath = cursor.parse().map_err(|_| invalid_cursor())?;
    match folder {
        Some(folder) if !path.starts_with(folder) || path == *folder => Err(invalid_cursor()),
        _ => Ok(path),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileQuery {
    /// The file.
    path: String,
    /// Name of the added root that contains it.
    root: Option<String>,
    /// The revision: a version, a saved name, `turn:NUMBER`, `take:NAME`, `folder` (the default) or a snapshot id.
    at: Option<String>,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// Position of the first byte to read.
    #[serde(default)]
    offset: u64,
}

/// A file, or a part of it.
#[derive(Serialize, JsonSchema)]
struct FileContent {
    /// The revision.
    at: NamedFiles,
    #[serde(flatten)]
    file: CapturedFile,
    /// Total size in bytes.
    bytes: u64,
    /// Whether it is binary.
    binary: bool,
    /// The text; null if binary. For a symbolic link, its target.
    text: Option<String>,
    /// The bytes in base64, if binary.
    base64: Option<String>,
    /// `offset` of the next part; null if this is the last.
    next: Option<u64>,
}

fn show(call: &Call<'_, ThreadPath, FileQuery>) -> Result<Answer<FileContent>, Problem> {
    let query = &call.query;
    let path = root_path(query.root.as_deref(), &query.path)?;
    let revisions = call.revisions(call.path.thread, query.take)?;
    let at = revisions.find(query.at.as_deref().unwrap_or(FOLDER))?;
    let reader = call.service.timeline.read()?;
    let found = reader.snapshot(at.snapshot).read(&path, query.offset, CHUNK_BYTES)?;
    let found =
        found.ok_or_else(|| Problem::not_found(format!("{path} is not captured at this revision")))?;
    let FilePiece { file, size, bytes } = found;
    if matches!(file.facts, FileFacts::Folder { .. }) {
        return Err(Problem::new(
            Code::Conflict,
            format!("{path} is a folder; use `workspace/files` to list it"),
        ));
    }
    let end = query.offset.saturating_add(bytes.len() as u64);
    let (text, bytes) = read(bytes, end < size);
    let end = query.offset.saturating_add(text.as_ref().map_or(bytes.len(), String::len) as u64);
    let shown = FileContent {
        at,
        file,
        bytes: size,
        binary: text.is_none(),
        base64: text.is_none().then(|| BASE64.encode(&bytes)),
        text,
        next: (end < size).then_some(end),
    };
    Ok(Answer::at(shown, reader.thread(call.path.thread)?.summary.version))
}

/// Decodes bytes as text, without a character that continues in the next part; returns the bytes if they are binary.
fn read(bytes: Vec<u8>, goes_on: bool) -> (Option<String>, Vec<u8>) {
    if bytes.contains(&0) {
        return (None, bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), Vec::new()),
        Err(error) => {
            let broken = error.utf8_error();
            let whole = broken.valid_up_to();
            let mut bytes = error.into_bytes();
            if broken.error_len().is_some() || !goes_on || whole == 0 {
                return (None, bytes);
            }
            bytes.truncate(whole);
            (String::from_utf8(bytes).ok(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_detected_and_never_split_inside_a_character() {
        let check = |bytes: &[u8], goes_on: bool, expected: Option<&str>| {
            let (text, left) = read(bytes.to_vec(), goes_on);
            assert_eq!(text.as_deref(), expected, "{} {goes_on}", bytes.escape_ascii());
            assert_eq!(left.as_slice(), if expected.is_some() { &[][..] } else { bytes });
        };
        check(b"", false, Some(""));
        check("größe".as_bytes(), false, Some("größe"));
        check(b"gr\xc3", true, Some("gr"));
        check(b"gr\xc3", false, None);
        check(b"\xc3", true, None);
        check(b"a\xffb", true, None);
        check(b"a\0b", false, None);
    }

    #[test]
    fn a_cursor_belongs_to_the_listed_folder() {
        let path = |text: &str| text.parse::<TreePath>().expect("a path");
        let check = |cursor: &str, folder: Option<&str>, good: bool| {
            let folder = folder.map(path);
            assert_eq!(parse_cursor(cursor, folder.as_ref()).is_ok(), good, "{cursor} {folder:?}");
        };
        check("a/b", None, true);
        check("a/b", Some("a"), true);
        check("a", Some("a"), false);
        check("ab/c", Some("a"), false);
        check("../a", None, false);
    }
}
