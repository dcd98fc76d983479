//! What differs between two trees. Whole folders that are the same are passed over without being read.

use std::collections::BTreeMap;

use super::{LeftOut, LeftOutPath, Node, Reason, SnapshotRoot, Tree, TreeEntry};
use crate::content::ContentId;
use crate::object::{Objects, Unavailable, load};
use crate::path::{FileName, TreePath};

/// One path that differs between two trees. Of a folder that came or went, the folder itself and everything
/// below it are named, each on its own. A folder that is on both sides is named only if its permissions differ;
/// its `tree` is then that of its side and says nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: TreePath,
    /// What was there.
    pub before: Option<Node>,
    /// What is there.
    pub after: Option<Node>,
}

/// Every path that differs between two trees, in the order of the paths' names.
pub fn differences(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
) -> Result<Vec<Difference>, Unavailable> {
    let mut found = Vec::new();
    descend(objects, before, after, &mut found)?;
    Ok(found)
}

/// Every path that is known to differ between two moments of a root. A path that one side left out (because it
/// was ignored then, say) is not known there: that it is not in the tree does not mean that it was not there.
pub fn changes(
    objects: &(impl Objects + ?Sized),
    before: Option<&SnapshotRoot>,
    after: Option<&SnapshotRoot>,
) -> Result<Vec<Difference>, Unavailable> {
    Ok(compare(objects, before, after)?.known)
}

/// What differs between two moments of a root, as far as both know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The paths that are known to differ.
    pub known: Vec<Difference>,
    /// The paths that one side holds and the other left out, and why; of a folder that was left out whole, only the
    /// folder. What stood there on that side nobody knows.
    pub unknown: BTreeMap<TreePath, Reason>,
    /// Those of the unknown paths that certainly changed: a captured file became too large, a pipe or unreadable, or the
    /// other way round. The side that is `None` was excluded, not absent.
    pub excluded: Vec<Difference>,
}

/// Compares two moments of a root.
pub fn compare(
    objects: &(impl Objects + ?Sized),
    before: Option<&SnapshotRoot>,
    after: Option<&SnapshotRoot>,
) -> Result<Compared, Unavailable> {
    let found = differences(objects, before.map(|root| root.tree), after.map(|root| root.tree))?;
    let (unknown_before, unknown_after) = (left_out(objects, before)?, left_out(objects, after)?);
    let mut compared = Compared::default();
    for difference in found {
        let unknown = match (&difference.before, &difference.after) {
            (None, _) => unknown_before.covering(&difference.path.bytes()),
            (_, None) => unknown_after.covering(&difference.path.bytes()),
            _ => None,
        };
        match unknown {
            None => compared.known.push(difference),
            Some(LeftOutPath { path, reason }) => {
                // It is the path of something that is held, or of a folder around it.
                let covering = TreePath::new(path).unwrap_or_else(|_| difference.path.clone());
                if is_certain_change(&covering, *reason, &difference) {
                    compared.excluded.push(difference);
                }
                compared.unknown.insert(covering, *reason);
            }
        }
    }
    Ok(compared)
}

/// Whether a path that is held on one side only must have changed. An ignore rule that names it now says nothing about
/// the file; that it is too large to be captured does.
fn is_certain_change(covering: &TreePath, reason: Reason, difference: &Difference) -> bool {
    let folder = difference.before.iter().chain(&difference.after).any(Node::is_folder);
    match reason {
        // Such a thing is no folder, so that nothing of what was below it is there.
        Reason::TooLarge | Reason::Special => true,
        // Of a folder that cannot be read it is not known what is in it.
        reason => reason.is_of_content() && *covering == difference.path && !folder,
    }
}

fn left_out(objects: &(impl Objects + ?Sized), root: Option<&SnapshotRoot>) -> Result<LeftOut, Unavailable> {
    root.and_then(|root| root.left_out).map_or_else(|| Ok(LeftOut::default()), |id| load(objects, id))
}

/// A folder whose two sides are being compared.
struct Level {
    at: Option<TreePath>,
    before: Entries,
    after: Entries,
}

type Entries = std::iter::Peekable<std::vec::IntoIter<TreeEntry>>;

impl Level {
    fn read(
        objects: &(impl Objects + ?Sized),
        at: Option<TreePath>,
        before: Option<ContentId>,
        after: Option<ContentId>,
    ) -> Result<Self, Unavailable> {
        let read = |id: Option<ContentId>| -> Result<Entries, Unavailable> {
            let tree: Tree = id.map_or_else(|| Ok(Tree::default()), |id| load(objects, id))?;
            Ok(tree.0.into_iter().peekable())
        };
        Ok(Self { at, before: read(before)?, after: read(after)? })
    }

    /// What stands under the next name.
    fn next(&mut self) -> Option<(FileName, Option<Node>, Option<Node>)> {
        let order = match (self.before.peek(), self.after.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(before), Some(after)) => before.name.cmp(&after.name),
        };
        let old = if order.is_le() { self.before.next() } else { None };
        let new = if order.is_ge() { self.after.next() } else { None };
        let name = old.as_ref().or(new.as_ref())?.name.clone();
        Some((name, old.map(|entry| entry.node), new.map(|entry| entry.node)))
    }
}

/// Goes down into folders without calling itself: how deep they are must not matter to the stack.
fn descend(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
    found: &mut Vec<Difference>,
) -> Result<(), Unavailable> {
    let mut levels = Vec::new();
    if before != after {
        levels.push(Level::read(objects, None, before, after)?);
    }
    while let Some(level) = levels.last_mut() {
        let Some((name, before, after)) = level.next() else {
            levels.pop();
            continue;
        };
        if before == after {
            continue;
        }
        let path = level.at.as_ref().map_or_else(|| TreePath::of(name.clone()), |at| at.join(name.clone()));
        let folder = |node: &Option<Node>| match node {
            Some(Node::Folder { tree, mode }) => Some((*tree, *mode)),
            _ => None,
        };
        let (inner_before, inner_after) = (folder(&before), folder(&after));
        let same_folder =
            matches!((inner_before, inner_after), (Some((_, old)), Some((_, new))) if old == new);
        if !same_folder {
            found.push(Difference { path: path.clone(), before, after });
        }
        let tree = |folder: Option<(ContentId, u16)>| folder.map(|(tree, _)| tree);
        let (before, after) = (tree(inner_before), tree(inner_after));
        if before != after {
            levels.push(Level::read(objects, Some(path), before, after)?);
        }
    }
    Ok(())
}
