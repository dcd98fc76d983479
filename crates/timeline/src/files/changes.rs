//! Differences between the files of two versions, as plain values with a stable JSON shape.
//!
//! ```text
//!   snapshot ─┐                 ┌─► paths     how each path changed
//!             ├─► differences ──┼─► counts    added and removed lines
//!   snapshot ─┘   with renames  └─► hunks     the lines themselves, changed words marked
//! ```
//!
//! Each level reads more than the one before it, so the caller chooses the detail.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::diff::{self, DiffError, Hunk, LineCounts, LineSide, MAX_TEXT_BYTES};
use retake_model::object::{ObjectError, Objects, load};
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{self, Node, PathChange, PathChangeKind, Snapshot, pair_renames, read};
use serde::Serialize;

use crate::ReadError;
use crate::files::snapshot::SnapshotReader;

/// Default number of context lines around a change.
pub const DEFAULT_CONTEXT: usize = 3;

/// Options of a file comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only these paths and everything below them; all paths if empty. Includes renamed files whose former name
    /// matches.
    pub paths: Vec<RootPath>,
    /// Only these paths, if given: those that a turn changed. The others are listed as left out.
    pub changed: Option<BTreeSet<RootPath>>,
    /// The level of detail.
    pub detail: Detail,
}

impl DiffOptions {
    /// Options for all paths with that detail.
    pub fn all(detail: Detail) -> Self {
        Self { paths: Vec::new(), changed: None, detail }
    }
}

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// How each path changed.
    Paths,
    /// Numbers of added and removed lines.
    Counts,
    /// The lines, with this number of context lines.
    Hunks(usize),
}

/// Differences between two snapshots.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// The first snapshot.
    pub before: ContentId,
    /// The second snapshot.
    pub after: ContentId,
    /// Totals over all files.
    pub stat: Stat,
    /// The files, sorted by path.
    pub files: Vec<FileDiff>,
    /// Paths left out of the changes of a turn: they changed meanwhile, by hand or by another program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside_turn: Vec<RootPath>,
}

/// Totals over all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DiffStat"))]
pub struct Stat {
    /// Number of changed paths.
    pub files: u64,
    /// Added and removed lines.
    #[serde(flatten)]
    pub lines: LineCounts,
}

impl Stat {
    /// Sums up these files.
    pub fn of(files: &[FileDiff]) -> Self {
        files.iter().fold(Self::default(), |stat, file| {
            let lines = file.lines.unwrap_or_default();
            let added = stat.lines.added + lines.added;
            Self {
                files: stat.files + 1,
                lines: LineCounts { added, removed: stat.lines.removed + lines.removed },
            }
        })
    }
}

/// The change of one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileDiff {
    /// The path.
    #[serde(flatten)]
    pub path: RootPath,
    /// The former path, if it was renamed.
    pub from: Option<TreePath>,
    /// The kind of change.
    pub change: PathChangeKind,
    /// The entry before.
    pub before: Option<FileFacts>,
    /// The entry after.
    pub after: Option<FileFacts>,
    /// How the content was compared.
    pub content: ContentComparison,
    /// Added and removed lines; `null` if not compared.
    pub lines: Option<LineCounts>,
    /// The lines, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<HunkView>,
}

/// What exists at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FileFacts {
    /// A file.
    File {
        /// Size in bytes.
        size: u64,
        /// Permissions as octal digits, like `chmod`.
        mode: String,
    },
    /// A symbolic link.
    Link {
        /// Target of the link.
        target: String,
    },
    /// A folder.
    Folder {
        /// Permissions.
        mode: String,
    },
}

/// How the content of a file was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ContentComparison"))]
#[serde(rename_all = "snake_case")]
pub enum ContentComparison {
    /// Equal; only name or permissions differ, or it is a folder.
    Same,
    /// Different; no details were requested.
    Different,
    /// Compared line by line.
    Text,
    /// Not text.
    Binary,
    /// Too large to compare line by line.
    TooLarge,
}

/// A hunk. Lines are counted from 1; an empty side gives the line before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HunkView {
    /// First line before.
    pub before_start: u64,
    /// Number of lines before.
    pub before_lines: u64,
    /// First line after.
    pub after_start: u64,
    /// Number of lines after.
    pub after_lines: u64,
    /// The lines.
    pub lines: Vec<LineView>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineView {
    /// The side that it is from.
    pub side: LineSide,
    /// The parts of the line, without its line feed. Invalid UTF-8 is replaced.
    pub parts: Vec<PartView>,
    /// Whether this is the last line and has no line feed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartView {
    /// The text.
    pub text: String,
    /// Whether the other side differs here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// A page of the differences between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesPage {
    /// The files of this page.
    pub files: Vec<FileDiff>,
    /// Number of files in total.
    pub count: u64,
    /// Paths left out of the changes of a turn.
    pub outside_turn: Vec<RootPath>,
}

/// Limit on the bytes of lines in one response.
const MAX_BYTES: usize = 8 * 1024 * 1024;

impl SnapshotReader<'_> {
    /// Compares the snapshot with a later one.
    pub fn changes(&self, after: ContentId, question: &DiffOptions) -> Result<Changes, ReadError> {
        Ok(changes(&self.reader.queries(), self.id, after, question)?)
    }

    /// A page of differences: at most `limit` files from index `start` on, fewer if they are very large.
    pub fn changes_page(
        &self,
        after: ContentId,
        question: &DiffOptions,
        start: usize,
        limit: usize,
    ) -> Result<ChangesPage, ReadError> {
        let queries = self.reader.queries();
        let mut found = changed_paths(&queries, self.id, after)?;
        let outside_turn = question.select(&mut found);
        let count = found.len() as u64;
        let (mut files, mut bytes) = (Vec::new(), 0);
        for (root, change) in found.into_iter().skip(start).take(limit) {
            if bytes >= MAX_BYTES {
                break;
            }
            let file = compare(&queries, &root, change, question.detail)?;
            let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
            bytes += lines.flat_map(|line| &line.parts).map(|part| part.text.len()).sum::<usize>();
            files.push(file);
        }
        Ok(ChangesPage { files, count, outside_turn })
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

/// Compares two snapshots.
pub(crate) fn changes(
    objects: &(impl Objects + ?Sized),
    before: ContentId,
    after: ContentId,
    question: &DiffOptions,
) -> Result<Changes, ObjectError> {
    let mut files = Vec::new();
    let mut found = changed_paths(objects, before, after)?;
    let outside_turn = question.select(&mut found);
    for (root, change) in found {
        files.push(compare(objects, &root, change, question.detail)?);
    }
    Ok(Changes { before, after, stat: Stat::of(&files), files, outside_turn })
}

/// The changed paths between two snapshots, root by root and sorted by path, with renames.
pub(crate) fn changed_paths(
    objects: &(impl Objects + ?Sized),
    before: ContentId,
    after: ContentId,
) -> Result<Vec<(String, PathChange)>, ObjectError> {
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

impl DiffOptions {
    /// Removes the changes that do not match; returns those that somebody else made during the turn.
    fn select(&self, found: &mut Vec<(String, PathChange)>) -> Vec<RootPath> {
        let mut outside_turn = Vec::new();
        found.retain(|(root, change)| {
            if !self.matches(root, change) {
                return false;
            }
            let named = |path: &TreePath| RootPath { root: root.clone(), path: path.clone() };
            let mut names = std::iter::once(&change.path).chain(&change.from).map(named);
            let is_own = self.changed.as_ref().is_none_or(|own| names.any(|name| own.contains(&name)));
            if !is_own {
                outside_turn.push(named(&change.path));
            }
            is_own
        });
        outside_turn
    }

    fn matches(&self, root: &str, change: &PathChange) -> bool {
        let names = || std::iter::once(&change.path).chain(&change.from);
        let below =
            |asked: &RootPath| asked.root == root && names().any(|name| name.starts_with(&asked.path));
        self.paths.is_empty() || self.paths.iter().any(below)
    }
}

/// Removes folders that were added or removed together with their content.
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
            && change.kind() != PathChangeKind::ModeChanged
            && parents.contains(&change.path)
    };
    changes.into_iter().filter(|change| !plain(change)).collect()
}

fn compare(
    objects: &(impl Objects + ?Sized),
    root: &str,
    change: PathChange,
    detail: Detail,
) -> Result<FileDiff, ObjectError> {
    let kind = change.kind();
    let text = compare_content(objects, change.before.as_ref(), change.after.as_ref(), detail)?;
    Ok(FileDiff {
        path: RootPath { root: root.to_owned(), path: change.path },
        from: change.from,
        change: kind,
        before: change.before.as_ref().map(FileFacts::of),
        after: change.after.as_ref().map(FileFacts::of),
        content: text.compared,
        lines: text.lines,
        hunks: text.hunks,
    })
}

/// The difference of two contents.
pub(crate) struct ContentDiff {
    pub(crate) compared: ContentComparison,
    pub(crate) lines: Option<LineCounts>,
    hunks: Vec<HunkView>,
}

/// Compares the content before and after at a path. Missing entries and folders have no content.
pub(crate) fn compare_content(
    objects: &(impl Objects + ?Sized),
    before: Option<&Node>,
    after: Option<&Node>,
    detail: Detail,
) -> Result<ContentDiff, ObjectError> {
    let only = |compared| Ok(ContentDiff { compared, lines: None, hunks: Vec::new() });
    if is_same(before, after) {
        return only(ContentComparison::Same);
    }
    if detail == Detail::Paths {
        return only(ContentComparison::Different);
    }
    let (Some(old), Some(new)) = (read_bounded(objects, before)?, read_bounded(objects, after)?) else {
        return only(ContentComparison::TooLarge);
    };
    let found = match diff::changes(&old, &new) {
        Ok(found) => found,
        Err(DiffError::Binary) => return only(ContentComparison::Binary),
        Err(DiffError::TooLarge) => return only(ContentComparison::TooLarge),
    };
    let hunks = match detail {
        Detail::Hunks(context) => diff::hunks(&old, &new, &found, context).iter().map(view).collect(),
        Detail::Paths | Detail::Counts => Vec::new(),
    };
    Ok(ContentDiff { compared: ContentComparison::Text, lines: Some(LineCounts::of(&found)), hunks })
}

fn is_same(before: Option<&Node>, after: Option<&Node>) -> bool {
    match (before, after) {
        (Some(Node::File { content: old, .. }), Some(Node::File { content: new, .. })) => old == new,
        (Some(Node::Link { target: old }), Some(Node::Link { target: new })) => old == new,
        (old, new) => old.is_none_or(Node::is_folder) && new.is_none_or(Node::is_folder),
    }
}

/// The bytes of a node, unless it is too large to compare.
fn read_bounded(
    objects: &(impl Objects + ?Sized),
    node: Option<&Node>,
) -> Result<Option<Vec<u8>>, ObjectError> {
    match node {
        None => Ok(Some(Vec::new())),
        Some(Node::File { size, .. }) if *size > MAX_TEXT_BYTES as u64 => Ok(None),
        Some(node) => read(objects, node).map(Some),
    }
}

fn view(hunk: &Hunk) -> HunkView {
    // Lines are counted from 1; an empty side names the line above, as in unified diffs.
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
