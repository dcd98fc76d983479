//! Reads the files of a snapshot: folders in pages, files in ranges.

use std::ops::Range;

use retake_model::content::ContentId;
use retake_model::object::{ObjectError, Objects, load};
use retake_model::path::{FileName, RootPath, TreePath};
use retake_model::tree::{Node, Snapshot, Tree, TreeEntry, read_piece, resolve};
use retake_store::Queries;
use serde::Serialize;

use crate::files::snapshot::SnapshotReader;
use crate::{FileFacts, ReadError};

/// An entry of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedFile {
    /// The path.
    #[serde(flatten)]
    pub path: RootPath,
    /// Its type and attributes.
    #[serde(flatten)]
    pub facts: FileFacts,
    /// Id of its content: equal files have equal ids.
    pub content: Option<ContentId>,
}

/// A page of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFilePage {
    /// The entries, sorted by the bytes of their names; folders before their content.
    pub items: Vec<CapturedFile>,
    /// Whether there are more.
    pub more: bool,
}

/// Options for listing a folder.
#[derive(Clone, Copy, Debug)]
pub struct ListOptions<'a> {
    /// The root.
    pub root: &'a str,
    /// The folder below the root; `None` for the root itself.
    pub folder: Option<&'a TreePath>,
    /// The depth.
    pub depth: Depth,
    /// Only entries after this path.
    pub after: Option<&'a TreePath>,
    /// Maximum number of entries.
    pub limit: usize,
}

/// Depth of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Only direct children.
    #[default]
    One,
    /// All descendants.
    All,
}

/// A range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    /// The file.
    pub file: CapturedFile,
    /// Size of the whole file in bytes.
    pub size: u64,
    /// The bytes in the range; the target of a link; empty for a folder.
    pub bytes: Vec<u8>,
}

impl SnapshotReader<'_> {
    /// Lists a folder; `None` if it does not exist.
    pub fn list(&self, question: ListOptions<'_>) -> Result<Option<CapturedFilePage>, ReadError> {
        let queries = self.reader.queries();
        let found: Snapshot = load(&queries, self.id)?;
        let Some(root) = found.root(question.root) else { return Ok(None) };
        let tree = match question.folder {
            None => root.tree,
            Some(path) => match resolve(&queries, root.tree, path)? {
                Some(Node::Folder { tree, .. }) => tree,
                _ => return Ok(None),
            },
        };
        Ok(Some(list(&queries, tree, question)?))
    }

    /// Reads a range of a file; `None` if it does not exist.
    pub fn read(&self, path: &RootPath, from: u64, most: u64) -> Result<Option<FilePiece>, ReadError> {
        let queries = self.reader.queries();
        let Some(node) = node_at(&queries, &load(&queries, self.id)?, path)? else { return Ok(None) };
        Ok(Some(piece_of(&queries, path, &node, from..from.saturating_add(most))?))
    }
}

/// The node at a path of a snapshot.
pub(crate) fn node_at(
    objects: &impl Objects,
    snapshot: &Snapshot,
    path: &RootPath,
) -> Result<Option<Node>, ObjectError> {
    snapshot.root(&path.root).map_or(Ok(None), |root| resolve(objects, root.tree, &path.path))
}

/// Reads a range of a file.
pub(crate) fn piece_of(
    objects: &impl Objects,
    path: &RootPath,
    node: &Node,
    range: Range<u64>,
) -> Result<FilePiece, ObjectError> {
    let bytes = read_piece(objects, node, range)?;
    let size = match node {
        Node::File { size, .. } => *size,
        Node::Link { target } => target.len() as u64,
        Node::Folder { .. } => 0,
    };
    Ok(FilePiece { file: captured(path.clone(), node), size, bytes })
}

/// A folder that is being listed. The levels are in a list, so that the depth of folders does not grow the stack.
struct Level<'names> {
    path: Option<TreePath>,
    entries: std::vec::IntoIter<TreeEntry>,
    /// The rest of the path at which the last page ended, if it leads through this folder.
    passed: &'names [FileName],
}

impl<'names> Level<'names> {
    fn open(
        queries: &Queries<'_>,
        tree: ContentId,
        path: Option<TreePath>,
        passed: &'names [FileName],
    ) -> Result<Self, ObjectError> {
        let tree = Tree::load(queries, tree)?;
        let entries =
            tree.entries().iter().filter(|entry| passed.first().is_none_or(|first| entry.name >= *first));
        let entries: Vec<TreeEntry> = entries.cloned().collect();
        Ok(Self { path, entries: entries.into_iter(), passed })
    }
}

fn list(
    queries: &Queries<'_>,
    tree: ContentId,
    question: ListOptions<'_>,
) -> Result<CapturedFilePage, ObjectError> {
    let above = question.folder.map_or(0, |folder| folder.names().len());
    let passed = question.after.map_or(&[][..], |after| after.names().get(above..).unwrap_or_default());
    let mut levels = vec![Level::open(queries, tree, question.folder.cloned(), passed)?];
    let mut items = Vec::new();
    while let Some(level) = levels.last_mut() {
        let Some(TreeEntry { name, node }) = level.entries.next() else {
            levels.pop();
            continue;
        };
        let already_listed = level.passed.first() == Some(&name);
        let rest = if already_listed { level.passed.get(1..).unwrap_or_default() } else { &[] };
        let path = match &level.path {
            Some(above) => above.join(name),
            None => TreePath::of(name),
        };
        if !already_listed {
            if items.len() >= question.limit {
                return Ok(CapturedFilePage { items, more: true });
            }
            let place = RootPath { root: question.root.to_owned(), path: path.clone() };
            items.push(captured(place, &node));
        }
        if let (Node::Folder { tree, .. }, Depth::All) = (&node, question.depth) {
            levels.push(Level::open(queries, *tree, Some(path), rest)?);
        }
    }
    Ok(CapturedFilePage { items, more: false })
}

fn captured(path: RootPath, node: &Node) -> CapturedFile {
    let content = match node {
        Node::File { content, .. } => Some(*content),
        Node::Folder { tree, .. } => Some(*tree),
        Node::Link { .. } => None,
    };
    CapturedFile { path, facts: FileFacts::of(node), content }
}
