//! Paths that a snapshot excludes. Their state is unknown, so that a move neither writes nor removes them.
//!
//! ```text
//!   the current files exclude it       the file there has no copy: it stays
//!   the target excludes it             an unknown file existed there: the current one stays
//!   the target has a folder there      a current file is not part of it, and is removed
//!   a step on the way excluded it      it stays, if it is still excluded now
//! ```

use std::collections::BTreeMap;

use super::{FileStep, PathOutcome, PathState, ReplayPath};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::{RootPath, TreePath};
use crate::tree::{Excluded, ExcludedPath, Snapshot, SnapshotRoot, compare};

/// The paths that a snapshot excludes, by root.
struct ExcludedPaths(BTreeMap<String, Excluded>);

impl ExcludedPaths {
    fn of<O: Objects + ?Sized>(objects: &O, snapshot: &Snapshot) -> Result<Self, ObjectError> {
        let lists = snapshot.roots.iter().map(|root| Ok((root.name.clone(), excluded(objects, root)?)));
        Ok(Self(lists.collect::<Result<_, ObjectError>>()?))
    }

    /// The exclusion of a path or of a folder above it.
    fn covering(&self, path: &RootPath) -> Option<&ExcludedPath> {
        self.0.get(&path.root)?.covering(&path.path.bytes())
    }
}

/// The excluded paths of a root.
pub(super) fn excluded<O: Objects + ?Sized>(
    objects: &O,
    root: &SnapshotRoot,
) -> Result<Excluded, ObjectError> {
    root.excluded.map_or_else(|| Ok(Excluded::default()), |id| load(objects, id))
}

/// Leaves paths as they are that the current files or the target exclude.
pub(super) fn leave_excluded<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    target: Option<&Snapshot>,
    touched: &mut BTreeMap<RootPath, PathState>,
) -> Result<(), ObjectError> {
    let here = ExcludedPaths::of(additions, present)?;
    let there = target.map(|target| ExcludedPaths::of(additions, target)).transpose()?;
    for (path, at) in touched.iter_mut() {
        if let (None, Some(found)) = (&at.present, here.covering(path)) {
            // A file that became too large is moved aside, so that the old one can return.
            if found.reason.is_about_content() && (at.wanted.is_some() || at.how != PathOutcome::Exact) {
                continue;
            }
            at.wanted = None;
            at.how = PathOutcome::NotCaptured(found.reason);
        }
        let removed = at.present.clone().filter(|_| at.wanted.is_none());
        let unknown = there.as_ref().and_then(|there| there.covering(path));
        if let (Some(removed), Some(found)) = (removed, unknown) {
            if found.is_folder_instead_of(&path.path, &removed) {
                at.how = PathOutcome::ReplacedFolder(found.reason);
            } else {
                at.wanted = Some(removed);
                at.how = PathOutcome::NotCaptured(found.reason);
            }
        }
    }
    Ok(())
}

/// The paths that changes on the way of a move made excluded, and that still are.
pub(super) fn left_behind<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    passed: &[FileStep],
) -> Result<BTreeMap<RootPath, PathOutcome>, ObjectError> {
    let mut left = BTreeMap::new();
    if present.roots.iter().all(|root| root.excluded.is_none()) {
        return Ok(left);
    }
    let here = ExcludedPaths::of(additions, present)?;
    for step in passed {
        let (from, to): (Snapshot, Snapshot) = (load(additions, step.from)?, load(additions, step.to)?);
        for root in &present.roots {
            let (Some(before), Some(after)) = (from.root(&root.name), to.root(&root.name)) else { continue };
            for (path, reason) in compare(additions, Some(before), Some(after))?.unknown {
                let path = RootPath { root: root.name.clone(), path };
                if here.covering(&path).is_some() {
                    left.insert(path, PathOutcome::NotCaptured(reason));
                }
            }
        }
    }
    Ok(left)
}

/// Merges the paths, which are sorted, with those that a step may have touched.
pub(super) fn with_unknown(
    mut paths: Vec<ReplayPath>,
    mut unknown: BTreeMap<RootPath, PathOutcome>,
) -> Vec<ReplayPath> {
    unknown.retain(|path, _| paths.binary_search_by(|known| known.path.cmp(path)).is_err());
    paths.extend(unknown.into_iter().map(|(path, how)| ReplayPath {
        path,
        present: None,
        wanted: None,
        how,
    }));
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    paths
}

/// The list without the paths where a captured node exists now.
pub(super) fn without(mut list: Excluded, paths: &BTreeMap<TreePath, Option<crate::tree::Node>>) -> Excluded {
    list.0.retain(|excluded| {
        !TreePath::new(&excluded.path).is_ok_and(|path| paths.get(&path).is_some_and(Option::is_some))
    });
    list
}
