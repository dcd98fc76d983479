//! Differences between two trees. Equal folders are skipped without being read.

use std::collections::BTreeMap;

use super::folder::differing_entries;
use super::{Excluded, ExclusionReason, Node, SnapshotRoot, TreeEntry};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects, load};
use crate::path::{FileName, TreePath};

/// One path that differs between two trees. An added or removed folder gives one difference for itself and
/// one for each path below it. A folder on both sides is included only if its permissions differ; its `tree`
/// is then that of its side and has no further meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub path: TreePath,
    /// The node before.
    pub before: Option<Node>,
    /// The node after.
    pub after: Option<Node>,
}

/// Every path that differs between two trees, in path order.
pub fn differences(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
) -> Result<Vec<Difference>, ObjectError> {
    let mut found = Vec::new();
    descend(objects, before, after, &mut found)?;
    Ok(found)
}

/// Every path known to differ between two snapshots of a root. A path that one side excludes (for example
/// because it was ignored) is unknown on that side: its absence from the tree does not mean that it did not
/// exist. Only a file or link in place of an excluded folder is known to be new.
pub fn changes(
    objects: &(impl Objects + ?Sized),
    before: Option<&SnapshotRoot>,
    after: Option<&SnapshotRoot>,
) -> Result<Vec<Difference>, ObjectError> {
    Ok(compare(objects, before, after)?.known)
}

/// The differences between two snapshots of a root, as far as both sides are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotComparison {
    /// The paths known to differ. A path at which one side has a file or link, and the other an excluded folder, is
    /// one of them, and its missing side stands for the folder.
    pub known: Vec<Difference>,
    /// The paths that one side captures and the other excludes, with the reason; for an excluded folder, only
    /// the folder. Their state on the excluding side is unknown.
    pub unknown: BTreeMap<TreePath, ExclusionReason>,
    /// The unknown paths that certainly changed: a captured file became too large, a pipe or unreadable, or
    /// the reverse. A side that is `None` was excluded, not absent.
    pub excluded: Vec<Difference>,
}

/// Compares two snapshots of a root.
pub fn compare(
    objects: &(impl Objects + ?Sized),
    before: Option<&SnapshotRoot>,
    after: Option<&SnapshotRoot>,
) -> Result<SnapshotComparison, ObjectError> {
    let found = differences(objects, before.map(|root| root.tree), after.map(|root| root.tree))?;
    let (unknown_before, unknown_after) = (excluded(objects, before)?, excluded(objects, after)?);
    let mut comparison = SnapshotComparison::default();
    for difference in found {
        let unknown = match (&difference.before, &difference.after) {
            (None, _) => unknown_before.covering(&difference.path.bytes()),
            (_, None) => unknown_after.covering(&difference.path.bytes()),
            _ => None,
        };
        match unknown {
            None => comparison.known.push(difference),
            Some(excluded) => {
                // The exclusion is of a captured path or of a folder above it.
                let covering = TreePath::new(&excluded.path).unwrap_or_else(|_| difference.path.clone());
                comparison.unknown.insert(covering.clone(), excluded.reason);
                let mut captured = difference.before.iter().chain(&difference.after);
                let is_new_kind = captured.any(|node| excluded.is_folder_instead_of(&difference.path, node));
                if is_certain_change(&covering, excluded.reason, &difference) {
                    comparison.excluded.push(difference);
                } else if is_new_kind {
                    comparison.known.push(difference);
                }
            }
        }
    }
    Ok(comparison)
}

/// Whether a path captured on one side only must have changed. A new ignore rule is no evidence of a change;
/// a file that is now too large to capture is.
fn is_certain_change(covering: &TreePath, reason: ExclusionReason, difference: &Difference) -> bool {
    let folder = difference.before.iter().chain(&difference.after).any(Node::is_folder);
    match reason {
        // Such a node is not a folder, so nothing below it exists any more.
        ExclusionReason::TooLarge | ExclusionReason::Special => true,
        // The content of an unreadable folder is unknown.
        reason => reason.is_about_content() && *covering == difference.path && !folder,
    }
}

fn excluded(objects: &(impl Objects + ?Sized), root: Option<&SnapshotRoot>) -> Result<Excluded, ObjectError> {
    root.and_then(|root| root.excluded).map_or_else(|| Ok(Excluded::default()), |id| load(objects, id))
}

/// A folder whose two sides are being compared, without entries in nodes that both have.
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
    ) -> Result<Self, ObjectError> {
        let [before, after] = differing_entries(objects, [before, after])?;
        Ok(Self { at, before: before.into_iter().peekable(), after: after.into_iter().peekable() })
    }

    /// The two nodes with the next name.
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

/// Descends into folders without recursion, so that deep folders cannot overflow the stack.
fn descend(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
    found: &mut Vec<Difference>,
) -> Result<(), ObjectError> {
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
