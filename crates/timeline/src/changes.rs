//! What differs between the files of two moments: plain values with a stable JSON shape, for every surface alike.
//!
//! ```text
//!   snapshot ─┐                 ┌─► paths     what happened to which
//!             ├─► differences ──┼─► counts    lines that came and went
//!   snapshot ─┘   with renames  └─► hunks     the lines themselves, changed words marked
//! ```
//!
//! Each needs more reading than the one before it, so a caller says how much it wants to know.

use retake_model::content::ContentId;
use retake_model::diff::{self, Counts, Hunk, Incomparable, LONGEST_TEXT, Side};
use retake_model::object::{Objects, Unavailable, load};
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{self, Happened, Node, PathChange, Snapshot, pair_renames, read};
use serde::Serialize;

use crate::{LookError, Looking};

/// How many lines are shown around a change unless something else is asked for.
pub const USUAL_CONTEXT: usize = 3;

/// What a caller wants to know of the files of two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Only what is at or below these paths; everything, if there are none. A renamed file is told if its
    /// former name is.
    pub paths: Vec<RootPath>,
    /// How much.
    pub detail: Detail,
}

impl Question {
    /// Everything that differs, so much of it.
    pub fn all(detail: Detail) -> Self {
        Self { paths: Vec::new(), detail }
    }
}

/// How much is told of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What happened to it.
    Paths,
    /// The lines that came and went, counted.
    Counts,
    /// The lines, with that many around each change.
    Hunks(usize),
}

/// What differs between two moments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// The snapshot of the first.
    pub before: ContentId,
    /// The snapshot of the second.
    pub after: ContentId,
    /// All files together.
    pub stat: Stat,
    /// Each file, in the order of the paths.
    pub files: Vec<FileDiff>,
}

/// All files together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DiffStat"))]
pub struct Stat {
    /// How many paths differ.
    pub files: u64,
    /// Lines that came and went.
    #[serde(flatten)]
    pub lines: Counts,
}

impl Stat {
    /// How much differs in these files.
    pub fn of(files: &[FileDiff]) -> Self {
        files.iter().fold(Self::default(), |stat, file| {
            let lines = file.lines.unwrap_or_default();
            let added = stat.lines.added + lines.added;
            Self {
                files: stat.files + 1,
                lines: Counts { added, removed: stat.lines.removed + lines.removed },
            }
        })
    }
}

/// What differs at one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileDiff {
    /// Where.
    #[serde(flatten)]
    pub path: RootPath,
    /// The path that it had before, if it was renamed.
    pub from: Option<TreePath>,
    /// What happened to it.
    pub happened: Happened,
    /// What was there.
    pub before: Option<FileFacts>,
    /// What is there.
    pub after: Option<FileFacts>,
    /// How the content was compared.
    pub content: Compared,
    /// Lines that came and went; none where they were not compared.
    pub lines: Option<Counts>,
    /// The lines, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<HunkView>,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FileFacts {
    /// A file.
    File {
        /// Its bytes.
        size: u64,
        /// Its permissions, in the octal digits that `chmod` takes.
        mode: String,
    },
    /// A symbolic link.
    Link {
        /// Where it points to.
        target: String,
    },
    /// A folder.
    Folder {
        /// Its permissions.
        mode: String,
    },
}

/// How the content of a file was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ContentComparison"))]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// It is the same; only name or permissions differ, or it is a folder.
    Same,
    /// It differs; by how much was not asked for.
    Different,
    /// Line by line.
    Text,
    /// It is not text.
    Binary,
    /// It is too large to be compared line by line.
    TooLarge,
}

/// A hunk, as it is shown. Lines are counted from 1; a side without lines gives the line that it stands after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HunkView {
    /// The first line before.
    pub before_start: u64,
    /// How many lines before.
    pub before_lines: u64,
    /// The first line after.
    pub after_start: u64,
    /// How many lines after.
    pub after_lines: u64,
    /// The lines.
    pub lines: Vec<LineView>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineView {
    /// Which text it is from.
    pub side: Side,
    /// The line in pieces, without its line feed. Bytes that are no text are replaced.
    pub parts: Vec<PartView>,
    /// Whether it is the last line and has no line feed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartView {
    /// The text.
    pub text: String,
    /// Whether the other side has something else here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl Looking<'_> {
    /// What differs between two snapshots.
    pub fn changes(
        &self,
        before: ContentId,
        after: ContentId,
        question: &Question,
    ) -> Result<Changes, LookError> {
        Ok(changes(&self.queries(), before, after, question)?)
    }
}

/// Some of what differs between two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct SomeChanges {
    /// These files.
    pub files: Vec<FileDiff>,
    /// How many there are in all.
    pub count: u64,
}

/// So many bytes of lines are put into one answer, and no further file.
const ROOM: usize = 8 * 1024 * 1024;

impl Looking<'_> {
    /// The same in pieces: at most `limit` files from the `start`th on, and fewer if there is very much to say of them.
    pub fn some_changes(
        &self,
        before: ContentId,
        after: ContentId,
        question: &Question,
        start: usize,
        limit: usize,
    ) -> Result<SomeChanges, LookError> {
        let queries = self.queries();
        let mut found = differing(&queries, before, after)?;
        found.retain(|(root, change)| question.lets_through(root, change));
        let count = found.len() as u64;
        let (mut files, mut bytes) = (Vec::new(), 0);
        for (root, change) in found.into_iter().skip(start).take(limit) {
            if bytes >= ROOM {
                break;
            }
            let file = compare(&queries, &root, change, question.detail)?;
            let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
            bytes += lines.flat_map(|line| &line.parts).map(|part| part.text.len()).sum::<usize>();
            files.push(file);
        }
        Ok(SomeChanges { files, count })
    }
}

impl LineView {
    /// The whole line.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

impl FileFacts {
    pub(crate) fn of(node: &Node) -> Self {
        let octal = |mode: &u16| format!("{mode:03o}");
        match node {
            Node::File { size, mode, .. } => Self::File { size: *size, mode: octal(mode) },
            Node::Link { target } => Self::Link { target: String::from_utf8_lossy(target).into_owned() },
            Node::Folder { mode, .. } => Self::Folder { mode: octal(mode) },
        }
    }
}

/// What differs between two snapshots.
pub(crate) fn changes(
    objects: &(impl Objects + ?Sized),
    before: ContentId,
    after: ContentId,
    question: &Question,
) -> Result<Changes, Unavailable> {
    let mut files = Vec::new();
    for (root, change) in differing(objects, before, after)? {
        if question.lets_through(&root, &change) {
            files.push(compare(objects, &root, change, question.detail)?);
        }
    }
    Ok(Changes { before, after, stat: Stat::of(&files), files })
}

/// What differs between two snapshots, root by root in the order of the paths, with renames recognised.
pub(crate) fn differing(
    objects: &(impl Objects + ?Sized),
    before: ContentId,
    after: ContentId,
) -> Result<Vec<(String, PathChange)>, Unavailable> {
    let (old, new): (Snapshot, Snapshot) = (load(objects, before)?, load(objects, after)?);
    let mut found = Vec::new();
    let gone = old.roots.iter().filter(|root| new.root(&root.name).is_none());
    for root in new.roots.iter().chain(gone) {
        let changes = tree::changes(objects, old.root(&root.name), new.root(&root.name))?;
        let paired = without_plain_folders(pair_renames(objects, changes)?);
        found.extend(paired.into_iter().map(|change| (root.name.clone(), change)));
    }
    Ok(found)
}

impl Question {
    fn lets_through(&self, root: &str, change: &PathChange) -> bool {
        let names = || std::iter::once(&change.path).chain(&change.from);
        let below =
            |asked: &RootPath| asked.root == root && names().any(|name| name.starts_with(&asked.path));
        self.paths.is_empty() || self.paths.iter().any(below)
    }
}

/// A folder that came or went together with what is in it says nothing of its own.
fn without_plain_folders(changes: Vec<PathChange>) -> Vec<PathChange> {
    let mut parents = std::collections::HashSet::new();
    for change in &changes {
        for name in std::iter::once(&change.path).chain(&change.from) {
            let mut parent = name.parent();
            while let Some(found) = parent {
                parent = found.parent();
                parents.insert(found);
            }
        }
    }
    let folder = |node: &Option<Node>| node.as_ref().is_none_or(Node::is_folder);
    let plain = |change: &PathChange| {
        folder(&change.before)
            && folder(&change.after)
            && change.happened() != Happened::ModeChanged
            && parents.contains(&change.path)
    };
    changes.into_iter().filter(|change| !plain(change)).collect()
}

fn compare(
    objects: &(impl Objects + ?Sized),
    root: &str,
    change: PathChange,
    detail: Detail,
) -> Result<FileDiff, Unavailable> {
    let happened = change.happened();
    let text = compare_content(objects, change.before.as_ref(), change.after.as_ref(), detail)?;
    Ok(FileDiff {
        path: RootPath { root: root.to_owned(), path: change.path },
        from: change.from,
        happened,
        before: change.before.as_ref().map(FileFacts::of),
        after: change.after.as_ref().map(FileFacts::of),
        content: text.compared,
        lines: text.lines,
        hunks: text.hunks,
    })
}

/// How two contents differ.
pub(crate) struct ComparedContent {
    pub(crate) compared: Compared,
    pub(crate) lines: Option<Counts>,
    hunks: Vec<HunkView>,
}

/// Compares what stood at a path with what stands there. Nothing and a folder have no content.
pub(crate) fn compare_content(
    objects: &(impl Objects + ?Sized),
    before: Option<&Node>,
    after: Option<&Node>,
    detail: Detail,
) -> Result<ComparedContent, Unavailable> {
    let only = |compared| Ok(ComparedContent { compared, lines: None, hunks: Vec::new() });
    if is_same(before, after) {
        return only(Compared::Same);
    }
    if detail == Detail::Paths {
        return only(Compared::Different);
    }
    let (Some(old), Some(new)) = (bounded(objects, before)?, bounded(objects, after)?) else {
        return only(Compared::TooLarge);
    };
    let found = match diff::changes(&old, &new) {
        Ok(found) => found,
        Err(Incomparable::Binary) => return only(Compared::Binary),
        Err(Incomparable::TooLarge) => return only(Compared::TooLarge),
    };
    let hunks = match detail {
        Detail::Hunks(context) => diff::hunks(&old, &new, &found, context).iter().map(view).collect(),
        Detail::Paths | Detail::Counts => Vec::new(),
    };
    Ok(ComparedContent { compared: Compared::Text, lines: Some(Counts::of(&found)), hunks })
}

fn is_same(before: Option<&Node>, after: Option<&Node>) -> bool {
    match (before, after) {
        (Some(Node::File { content: old, .. }), Some(Node::File { content: new, .. })) => old == new,
        (Some(Node::Link { target: old }), Some(Node::Link { target: new })) => old == new,
        (old, new) => old.is_none_or(Node::is_folder) && new.is_none_or(Node::is_folder),
    }
}

/// The bytes of something, unless it is too large to be compared.
fn bounded(objects: &(impl Objects + ?Sized), node: Option<&Node>) -> Result<Option<Vec<u8>>, Unavailable> {
    match node {
        None => Ok(Some(Vec::new())),
        Some(Node::File { size, .. }) if *size > LONGEST_TEXT as u64 => Ok(None),
        Some(node) => read(objects, node).map(Some),
    }
}

fn view(hunk: &Hunk) -> HunkView {
    // People and programs count lines from 1; a side without lines names the line above, as everywhere.
    let start = |range: &std::ops::Range<usize>| (range.start + usize::from(!range.is_empty())) as u64;
    HunkView {
        before_start: start(&hunk.before),
        before_lines: hunk.before.len() as u64,
        after_start: start(&hunk.after),
        after_lines: hunk.after.len() as u64,
        lines: hunk.lines.iter().map(view_line).collect(),
    }
}

fn view_line(line: &diff::HunkLine) -> LineView {
    let parts = line.parts.iter().map(|part| {
        let bytes = part.bytes.strip_suffix(b"\n").unwrap_or(&part.bytes);
        PartView { text: String::from_utf8_lossy(bytes).into_owned(), changed: part.changed }
    });
    let parts = parts.filter(|part| !part.text.is_empty()).collect();
    LineView { side: line.side, parts, no_newline: !line.is_ended() }
}
