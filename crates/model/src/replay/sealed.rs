//! Replay of sealed files: compared by digest, never merged, and never overwriting later changes of the user.

use std::collections::BTreeMap;

use super::{OnConflict, PathOutcome, ReplayPath, ReplayPlan, Selection, excluded};
use crate::content::Kind;
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::{RootPath, TreePath};
use crate::sealed::{SealedFiles, SealedMap, SealedState, sealed_changes, sealed_of};
use crate::tree::{Excluded, ExclusionReason, Snapshot, SnapshotRoot, TreeCursor};

/// The state of a sealed path after the steps applied so far.
struct SealedPathState {
    present: Option<SealedState>,
    wanted: SealedState,
    /// Whether it is captured now like any other file, because it is no longer excluded.
    captured: bool,
    how: PathOutcome,
    settled: bool,
}

/// Applies the steps to the sealed files of the current snapshot: updates the sealed lists of its roots and
/// reports each path that a step touches.
pub(super) fn carry<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    wanted: &mut Snapshot,
    plan: &ReplayPlan,
    on_conflict: OnConflict,
) -> Result<Vec<ReplayPath>, ObjectError> {
    let mut paths = Vec::new();
    for root in &present.roots {
        let here = sealed_of(additions, Some(root))?;
        let mut carried: BTreeMap<TreePath, SealedPathState> = BTreeMap::new();
        let mut passed_over = SealedMap::new();
        let mut now = TreeCursor::new(root.tree);
        for (number, step) in plan.back.iter().chain(&plan.steps).enumerate() {
            if number == plan.back.len() {
                for carried in carried.values_mut() {
                    carried.settled = true;
                }
            }
            if step.between_folders {
                continue;
            }
            let (from, to): (Snapshot, Snapshot) = (load(additions, step.from)?, load(additions, step.to)?);
            let from = sealed_of(additions, from.root(&root.name))?;
            let to = sealed_of(additions, to.root(&root.name))?;
            for (path, before, after) in sealed_changes(&from, &to) {
                // Paths that the reversed move skipped stay, as for all other files.
                if plan.is_exact(number) && on_conflict == OnConflict::Keep {
                    passed_over.insert(path, after);
                    continue;
                }
                let captured = !here.contains_key(&path) && now.get(additions, &path)?.is_some();
                let found = carried.entry(path.clone()).or_insert_with(|| SealedPathState {
                    present: here.get(&path).cloned(),
                    wanted: here.get(&path).unwrap_or(&before).clone(),
                    captured,
                    how: PathOutcome::Exact,
                    settled: false,
                });
                let is_untracked = found.present.is_none() && !found.captured;
                let untracked = if is_untracked && is_stored(additions, [&before, &after])? {
                    PathOutcome::NoLongerTracked
                } else {
                    PathOutcome::NotCaptured(ExclusionReason::NotSealed)
                };
                found.step(&before, after, on_conflict, untracked);
            }
        }
        if let Some(first) = plan.back.first() {
            let left: Snapshot = load(additions, first.from)?;
            let left = sealed_of(additions, left.root(&root.name))?;
            for (path, theirs) in passed_over {
                let (Some(left), Some(now)) = (left.get(&path), here.get(&path)) else { continue };
                if !carried.contains_key(&path) && !now.same(left) && !now.same(&theirs) {
                    let how = PathOutcome::Conflict { theirs: theirs.node(), kept: true };
                    let (present, wanted) = (Some(now.clone()), now.clone());
                    carried.insert(
                        path,
                        SealedPathState { present, wanted, captured: false, how, settled: true },
                    );
                }
            }
        }
        paths.extend(settle(additions, root, wanted, carried, here)?);
    }
    Ok(paths)
}

/// Restores the sealed files of a selection from another snapshot.
pub(super) fn restore_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    target: &Snapshot,
    wanted: &mut Snapshot,
    selection: &Selection,
) -> Result<Vec<ReplayPath>, ObjectError> {
    let mut paths = Vec::new();
    for root in &present.roots {
        let here = sealed_of(additions, Some(root))?;
        let there = sealed_of(additions, target.root(&root.name))?;
        let expected =
            |path: &TreePath| selection.covers(&RootPath { root: root.name.clone(), path: path.clone() });
        let carried = sealed_changes(&here, &there).into_iter().filter(|(path, ..)| expected(path));
        let carried = carried.map(|(path, before, after)| {
            let mut found = SealedPathState {
                present: Some(before.clone()),
                wanted: before.clone(),
                captured: false,
                how: PathOutcome::Exact,
                settled: false,
            };
            let untracked = PathOutcome::NotCaptured(ExclusionReason::NotSealed);
            found.step(&before, after, OnConflict::Keep, untracked);
            (path, found)
        });
        paths.extend(settle(additions, root, wanted, carried.collect(), here)?);
    }
    Ok(paths)
}

impl SealedPathState {
    /// Applies a step; `untracked` is the outcome if the path is neither sealed nor captured in this folder.
    fn step(
        &mut self,
        before: &SealedState,
        after: SealedState,
        on_conflict: OnConflict,
        untracked: PathOutcome,
    ) {
        if self.settled || !matches!(self.how, PathOutcome::Exact) || self.wanted.same(&after) {
            return;
        }
        if matches!(after, SealedState::NotStored { .. }) {
            self.how = PathOutcome::NotCaptured(ExclusionReason::NotSealed);
        } else if self.present.is_none() && !self.captured {
            self.how = untracked;
        } else if self.wanted.same(before) && !self.captured {
            self.wanted = after;
        } else {
            // Writing both versions of a secret between markers would be worse than either.
            let kept = on_conflict != OnConflict::Take;
            self.how = PathOutcome::Conflict { theirs: after.node(), kept };
            if !kept {
                self.wanted = after;
            }
        }
    }
}

fn settle<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    root: &SnapshotRoot,
    wanted: &mut Snapshot,
    carried: BTreeMap<TreePath, SealedPathState>,
    mut states: SealedMap,
) -> Result<Vec<ReplayPath>, ObjectError> {
    let mut paths = Vec::new();
    let tree = wanted.root(&root.name).map_or(root.tree, |root| root.tree);
    let (mut after, excluded) = (TreeCursor::new(tree), excluded::excluded(additions, root)?);
    for (path, SealedPathState { present, mut wanted, mut how, .. }) in carried {
        let is_written = matches!(wanted, SealedState::File(_)) && present.as_ref() != Some(&wanted);
        if is_written && is_below_file(additions, &mut after, &excluded, &path)? {
            how = PathOutcome::ParentNotFolder;
            wanted = present.clone().unwrap_or(SealedState::Nothing);
        }
        let report = |state: Option<&SealedState>| state.and_then(SealedState::node);
        paths.push(ReplayPath {
            path: RootPath { root: root.name.clone(), path: path.clone() },
            present: report(present.as_ref()),
            wanted: report(Some(&wanted)),
            how,
        });
        states.insert(path, wanted);
    }
    if !paths.is_empty()
        && let Some(root) = wanted.roots.iter_mut().find(|found| found.name == root.name)
    {
        root.sealed = Some(additions.add(&SealedFiles::new(&states)));
    }
    Ok(paths)
}

/// Whether the sealed bytes of all states are in the store: an import has empty placeholders for them.
fn is_stored<O: Objects + ?Sized>(objects: &O, states: [&SealedState; 2]) -> Result<bool, ObjectError> {
    for state in states {
        let parts = match state {
            SealedState::File(file) => file.parts.as_slice(),
            SealedState::Nothing => &[],
            SealedState::NotStored { .. } => return Ok(false),
        };
        for part in parts {
            match objects.bytes(Kind::Sealed, *part) {
                Ok(bytes) if !bytes.is_empty() => {}
                Err(ObjectError::Unreadable(error)) => return Err(ObjectError::Unreadable(error)),
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Whether a captured or excluded file is where the path needs a folder.
fn is_below_file<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    after: &mut TreeCursor,
    excluded: &Excluded,
    path: &TreePath,
) -> Result<bool, ObjectError> {
    let mut next = path.parent();
    while let Some(above) = next {
        next = above.parent();
        let is_file = match after.get(additions, &above)? {
            Some(node) => !node.is_folder(),
            None => excluded.at(&above.bytes()).is_some_and(|found| found.kind.is_none()),
        };
        if is_file {
            return Ok(true);
        }
    }
    Ok(false)
}
