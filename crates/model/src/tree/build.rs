//! Looking into trees, and making one tree out of another.

use std::collections::BTreeMap;

use super::{Node, Tree};
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
    let changes: Vec<(&[FileName], &Option<Node>)> =
        changes.iter().map(|(path, node)| (path.names(), node)).collect();
    let tree: Tree = load(additions, tree)?;
    let tree = graft_into(additions, tree, &changes)?;
    Ok(additions.add(&tree))
}

/// The permissions of folders that are made only because something stands below them.
const USUAL_MODE: u16 = 0o755;

fn graft_into<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    tree: Tree,
    changes: &[(&[FileName], &Option<Node>)],
) -> Result<Tree, Unavailable> {
    // The changes are in the order of their paths, so those below one name stand together.
    let mut entries: BTreeMap<FileName, Node> =
        tree.0.into_iter().map(|entry| (entry.name, entry.node)).collect();
    for group in changes.chunk_by(|left, right| left.0[0] == right.0[0]) {
        let name = &group[0].0[0];
        let (here, below): (Vec<_>, Vec<_>) = group.iter().partition(|change| change.0.len() == 1);
        if let Some((_, node)) = here.first() {
            match node {
                Some(node) => entries.insert(name.clone(), node.clone()),
                None => entries.remove(name),
            };
        }
        if below.is_empty() {
            continue;
        }
        let below: Vec<(&[FileName], &Option<Node>)> =
            below.into_iter().map(|(path, node)| (&path[1..], node)).collect();
        let (inner, mode): (Tree, u16) = match entries.get(name) {
            Some(Node::Folder { tree, mode }) => (load(additions, *tree)?, *mode),
            _ if below.iter().all(|(_, node)| node.is_none()) => continue,
            _ => (Tree::default(), USUAL_MODE),
        };
        let inner = graft_into(additions, inner, &below)?;
        let tree = additions.add(&inner);
        entries.insert(name.clone(), Node::Folder { tree, mode });
    }
    Ok(Tree::new(entries.into_iter().map(|(name, node)| super::TreeEntry { name, node }).collect()))
}
