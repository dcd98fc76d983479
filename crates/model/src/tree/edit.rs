//! Lookup in trees, and edited copies of trees.

use std::collections::BTreeMap;

use super::folder::FolderCursor;
use super::{Node, Tree, TreeEntry, entry};
use crate::content::ContentId;
use crate::object::{Additions, ObjectError, Objects};
use crate::path::{FileName, TreePath};

/// The node at a path below a tree.
pub fn resolve(
    objects: &(impl Objects + ?Sized),
    tree: ContentId,
    path: &TreePath,
) -> Result<Option<Node>, ObjectError> {
    let mut folder = tree;
    for name in path.parents() {
        match entry(objects, folder, name)? {
            Some(Node::Folder { tree, .. }) => folder = tree,
            _ => return Ok(None),
        }
    }
    entry(objects, folder, path.name())
}

/// Replaces or removes the nodes at some paths. Missing parent folders are created. A grafted folder comes
/// with its whole content, so add paths below it to its own tree or as separate paths. Removing a path does
/// not remove folders that become empty.
pub fn graft<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    tree: ContentId,
    changes: &BTreeMap<TreePath, Option<Node>>,
) -> Result<ContentId, ObjectError> {
    let changes: Vec<Change<'_>> = changes.iter().map(|(path, node)| (path.names(), node.as_ref())).collect();
    let mut levels = vec![Level::new(Some(tree), None, &changes)];
    loop {
        let depth = levels.len() - 1;
        let level = &mut levels[depth];
        if let Some(below) = level.next(additions, depth)? {
            levels.push(below);
            continue;
        }
        let Level { place, tree, edits, .. } = levels.pop().expect("the stack is not empty");
        let tree = if let Some(tree) = tree {
            Tree::edit(additions, tree, &edits)?
        } else {
            let entries =
                edits.into_iter().filter_map(|(name, node)| node.map(|node| TreeEntry { name, node }));
            Tree(entries.collect()).add_to(additions)
        };
        match (levels.last_mut(), place) {
            (Some(above), Some((name, mode))) => {
                above.edits.insert(name, Some(Node::Folder { tree, mode }));
            }
            _ => return Ok(tree),
        }
    }
}

/// The names of a path, and the node to put there.
type Change<'changes> = (&'changes [FileName], Option<&'changes Node>);

/// A folder that is being edited. Levels are in a list, so that deep folders cannot overflow the stack.
struct Level<'changes> {
    /// Its name in the parent folder, and its permissions.
    place: Option<(FileName, u16)>,
    /// Its tree before; `None` for a new folder.
    tree: Option<ContentId>,
    lookup: FolderCursor,
    /// Its changed entries.
    edits: BTreeMap<FileName, Option<Node>>,
    /// The remaining changes, sorted by path, so that those below one name are adjacent.
    changes: &'changes [Change<'changes>],
}

/// The permissions of folders created only as parents.
const DEFAULT_MODE: u16 = 0o755;

impl<'changes> Level<'changes> {
    fn new(
        tree: Option<ContentId>,
        place: Option<(FileName, u16)>,
        changes: &'changes [Change<'changes>],
    ) -> Self {
        Self { place, tree, lookup: FolderCursor::default(), edits: BTreeMap::new(), changes }
    }

    /// The current node of a name.
    fn get(
        &mut self,
        objects: &(impl Objects + ?Sized),
        name: &FileName,
    ) -> Result<Option<Node>, ObjectError> {
        match (self.edits.get(name), self.tree) {
            (Some(node), _) => Ok(node.clone()),
            (None, Some(tree)) => self.lookup.get(objects, tree, name),
            (None, None) => Ok(None),
        }
    }

    /// Applies the changes of this folder up to the next folder with changes below it.
    fn next<O: Objects + ?Sized>(
        &mut self,
        additions: &Additions<'_, O>,
        depth: usize,
    ) -> Result<Option<Self>, ObjectError> {
        while let Some((names, node)) = self.changes.first() {
            let name = &names[depth];
            let together = self.changes.iter().take_while(|(names, _)| names[depth] == *name).count();
            let (mut below, rest) = self.changes.split_at(together);
            self.changes = rest;
            // A path precedes those below it.
            if names.len() == depth + 1 {
                self.edits.insert(name.clone(), (*node).cloned());
                below = &below[1..];
            }
            if below.is_empty() {
                continue;
            }
            let (inner, mode) = match self.get(additions, name)? {
                Some(Node::Folder { tree, mode }) => (Some(tree), mode),
                _ if below.iter().all(|(_, node)| node.is_none()) => continue,
                _ => (None, DEFAULT_MODE),
            };
            return Ok(Some(Self::new(inner, Some((name.clone(), mode)), below)));
        }
        Ok(None)
    }
}
