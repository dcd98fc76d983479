//! Constraints between the paths of a replay: a folder is removed only if it is empty, and nothing is written
//! below a path that is not a folder.

use std::collections::{BTreeMap, BTreeSet};

use super::{PathOutcome, PathState};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::{RootPath, TreePath};
use crate::sealed::sealed_of;
use crate::tree::{Excluded, ExclusionReason, Node, Snapshot, SnapshotCursor, Tree};

/// Makes the resulting paths consistent. Paths that cannot be consistent become conflicts and stay as they
/// are.
pub(super) fn settle<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    touched: &mut BTreeMap<RootPath, PathState>,
) -> Result<(), ObjectError> {
    let mut now = SnapshotCursor::new(present);
    let others = other_projects(additions, present)?;
    let holders = holders_of_excluded(additions, present)?;
    let is_elsewhere = |path: &RootPath| {
        others.iter().any(|other| other.root == path.root && path.path.starts_with(&other.path))
    };
    // Each round can only turn more paths into ones that stay, so the loop terminates.
    loop {
        let mut staying = Vec::new();
        let mut above = AncestorFolders::default();
        for (path, at) in touched.iter() {
            let moves = at.wanted != at.present;
            let comes = moves && at.wanted.is_some();
            if (moves && is_elsewhere(path)) || (comes && above.blocks(additions, &mut now, touched, path)?) {
                staying.push(path.clone());
            }
        }
        // In reverse order, the content of a folder precedes it, so the deepest folders are processed first.
        for (path, at) in touched.iter().rev() {
            if holds_more(additions, touched, &holders, path, at)? {
                staying.push(path.clone());
            }
        }
        if staying.is_empty() {
            return Ok(());
        }
        for path in staying {
            if let Some(at) = touched.get_mut(&path) {
                stay(at);
            }
        }
    }
}

/// The nested folders that are other projects or worktrees of takes. They have their own files, so no step
/// applies to them.
fn other_projects<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
) -> Result<Vec<RootPath>, ObjectError> {
    let mut others = Vec::new();
    for root in &present.roots {
        let Some(id) = root.excluded else { continue };
        let excluded: Excluded = load(additions, id)?;
        let found = excluded.0.iter().filter(|left| left.reason == ExclusionReason::OtherProject);
        let paths = found.filter_map(|left| TreePath::new(&left.path).ok());
        others.extend(paths.map(|path| RootPath { root: root.name.clone(), path }));
    }
    Ok(others)
}

/// The folders that contain something excluded, such as an ignored file or a pipe. Sealed files do not count,
/// because the same move may remove them.
fn holders_of_excluded<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
) -> Result<BTreeSet<RootPath>, ObjectError> {
    let mut holders = BTreeSet::new();
    for root in &present.roots {
        let Some(id) = root.excluded else { continue };
        let (excluded, sealed): (Excluded, _) = (load(additions, id)?, sealed_of(additions, Some(root))?);
        for left in &excluded.0 {
            let is_sealed = TreePath::new(&left.path).is_ok_and(|path| sealed.contains_key(&path));
            let slash = left.path.iter().rposition(|byte| *byte == b'/');
            let folder = slash.and_then(|slash| TreePath::new(&left.path[..slash]).ok());
            if let Some(path) = folder.filter(|_| !is_sealed) {
                holders.insert(RootPath { root: root.name.clone(), path });
            }
        }
    }
    Ok(holders)
}

/// Lets a path stay as it is. A folder that stays because it is not empty is no conflict: no step removes its
/// content.
fn stay(at: &mut PathState) {
    let theirs = std::mem::replace(&mut at.wanted, at.present.clone());
    let only_not_empty = at.present.as_ref().is_some_and(Node::is_folder) && theirs.is_none();
    at.how = if only_not_empty { PathOutcome::Merged } else { PathOutcome::Conflict { theirs, kept: true } };
}

/// The folders above the last path, and whether one of them stops being a folder. With sorted paths this
/// costs one lookup per folder; walking up from each path would be cubic in the depth.
#[derive(Default)]
struct AncestorFolders {
    folders: Vec<(RootPath, bool)>,
}

impl AncestorFolders {
    /// Whether a path is below a node that is not a folder.
    fn blocks<O: Objects + ?Sized>(
        &mut self,
        additions: &Additions<'_, O>,
        now: &mut SnapshotCursor,
        touched: &BTreeMap<RootPath, PathState>,
        path: &RootPath,
    ) -> Result<bool, ObjectError> {
        let is_above = |folder: &RootPath| {
            folder.root == path.root && folder.path != path.path && path.path.starts_with(&folder.path)
        };
        while self.folders.last().is_some_and(|(folder, _)| !is_above(folder)) {
            self.folders.pop();
        }
        let mut missing = Vec::new();
        let mut next = path.path.parent();
        while let Some(folder) = next.filter(|folder| !self.ends_with(folder)) {
            next = folder.parent();
            missing.push(RootPath { root: path.root.clone(), path: folder });
        }
        for folder in missing.into_iter().rev() {
            let node = match touched.get(&folder) {
                Some(found) => found.wanted.clone(),
                None => now.get(additions, &folder)?,
            };
            let blocks = self.last_blocks() || node.is_some_and(|node| !node.is_folder());
            self.folders.push((folder, blocks));
        }
        Ok(self.last_blocks())
    }

    fn ends_with(&self, folder: &TreePath) -> bool {
        self.folders.last().is_some_and(|(last, _)| last.path == *folder)
    }

    fn last_blocks(&self) -> bool {
        self.folders.last().is_some_and(|(_, blocks)| *blocks)
    }
}

/// Whether a folder to be removed or replaced contains a node that stays.
fn holds_more<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    touched: &BTreeMap<RootPath, PathState>,
    holders: &BTreeSet<RootPath>,
    path: &RootPath,
    at: &PathState,
) -> Result<bool, ObjectError> {
    let Some(Node::Folder { tree, .. }) = &at.present else { return Ok(false) };
    if at.wanted.as_ref().is_some_and(Node::is_folder) {
        return Ok(false);
    }
    let is_here = |holder: &RootPath| holder.root == path.root && holder.path.starts_with(&path.path);
    if holders.range(path..).next().is_some_and(is_here) {
        return Ok(true);
    }
    let tree = Tree::load(additions, *tree)?;
    Ok(tree.entries().iter().any(|entry| {
        let below = RootPath { root: path.root.clone(), path: path.path.join(entry.name.clone()) };
        touched.get(&below).is_none_or(|below| below.wanted.is_some())
    }))
}

/// The node to graft at a path: a new folder starts empty, because its content has its own paths; an existing
/// one keeps its content.
pub(super) fn as_grafted<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    touched: &PathState,
) -> Option<Node> {
    match (&touched.present, &touched.wanted) {
        (Some(Node::Folder { tree, .. }), Some(Node::Folder { mode, .. })) => {
            Some(Node::Folder { tree: *tree, mode: *mode })
        }
        (_, Some(Node::Folder { mode, .. })) => {
            Some(Node::Folder { tree: Tree::default().add_to(additions), mode: *mode })
        }
        (_, wanted) => wanted.clone(),
    }
}
