//! Looking into trees, and making one tree out of another.

use std::collections::BTreeMap;

use super::{Node, Tree, TreeEntry};
use crate::content::ContentId;
use crate::object::{Additions, Objects, Unavailable, load};
use crate::path::{FileName, TreePath};

/// What stands at a path below a tree.
pub fn resolve(
    objects: &(impl Objects + ?Sized),
    tree: ContentId,
    path: &TreePath,
) -> Result<Option<Node>, Unavailable> {
    let mut tree: Tree = load(objects, tree)?;
    for name in path.parents() {
        match tree.get(name) {
            Some(Node::Folder { tree: below, .. }) => tree = load(objects, *below)?,
            _ => return Ok(None),
        }
    }
    Ok(tree.get(path.name()).cloned())
}

/// The tree with other things, or nothing, at some paths. Folders on the way are made as needed; a folder that
/// is put somewhere stands with all that is in it, so name what goes below it in its own tree or as a path of
/// its own. What a path removes does not take folders that become empty with it.
pub fn graft<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    tree: ContentId,
    changes: &BTreeMap<TreePath, Option<Node>>,
) -> Result<ContentId, Unavailable> {
    let changes: Vec<Change<'_>> = changes.iter().map(|(path, node)| (path.names(), node.as_ref())).collect();
    let mut levels = vec![Level::new(load(additions, tree)?, None, &changes)];
    loop {
        let depth = levels.len() - 1;
        let level = &mut levels[depth];
        if let Some(below) = level.next(additions, depth)? {
            levels.push(below);
            continue;
        }
        let Level { place, entries, .. } = levels.pop().expect("one was just there");
        let entries = entries.into_iter().map(|(name, node)| TreeEntry { name, node });
        let tree = additions.add(&Tree::new(entries.collect()));
        match (levels.last_mut(), place) {
            (Some(above), Some((name, mode))) => {
                above.entries.insert(name, Node::Folder { tree, mode });
            }
            _ => return Ok(tree),
        }
    }
}

/// The names of a path, and what is to stand there.
type Change<'changes> = (&'changes [FileName], Option<&'changes Node>);

/// A folder that is being changed. How deep folders are must not matter to the stack, so they are kept in a list.
struct Level<'changes> {
    /// What it is called in the folder above, and its permissions.
    place: Option<(FileName, u16)>,
    entries: BTreeMap<FileName, Node>,
    /// The changes that are left, in the order of their paths, so that those below one name stand together.
    changes: &'changes [Change<'changes>],
}

/// The permissions of folders that are made only because something stands below them.
const USUAL_MODE: u16 = 0o755;

impl<'changes> Level<'changes> {
    fn new(tree: Tree, place: Option<(FileName, u16)>, changes: &'changes [Change<'changes>]) -> Self {
        let entries = tree.0.into_iter().map(|entry| (entry.name, entry.node)).collect();
        Self { place, entries, changes }
    }

    /// Makes the changes of this folder up to the next folder that has changes below it.
    fn next<O: Objects + ?Sized>(
        &mut self,
        additions: &Additions<'_, O>,
        depth: usize,
    ) -> Result<Option<Self>, Unavailable> {
        while let Some((names, node)) = self.changes.first() {
            let name = &names[depth];
            let together = self.changes.iter().take_while(|(names, _)| names[depth] == *name).count();
            let (mut below, rest) = self.changes.split_at(together);
            self.changes = rest;
            // A path comes before those below it.
            if names.len() == depth + 1 {
                match node {
                    Some(node) => self.entries.insert(name.clone(), (*node).clone()),
                    None => self.entries.remove(name),
                };
                below = &below[1..];
            }
            if below.is_empty() {
                continue;
            }
            let (inner, mode): (Tree, u16) = match self.entries.get(name) {
                Some(Node::Folder { tree, mode }) => (load(additions, *tree)?, *mode),
                _ if below.iter().all(|(_, node)| node.is_none()) => continue,
                _ => (Tree::default(), USUAL_MODE),
            };
            return Ok(Some(Self::new(inner, Some((name.clone(), mode)), below)));
        }
        Ok(None)
    }
}
