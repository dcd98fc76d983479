//! Replay of sealed files: compared by digest, never merged, and never overwriting later changes of the user.
//!
//! A path that ignore rules make captured in one snapshot and excluded in another has one history here: see
//! [`crate::sealed`]. A path that is captured in every snapshot of a move (or missing) is an ordinary file, even if it was
//! sealed before.

use std::collections::{BTreeMap, BTreeSet};

use super::{OnConflict, PathOutcome, ReplayPath, ReplayPlan, Selection, excluded, with_tree};
use crate::content::Kind;
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::{RootPath, TreePath};
use crate::sealed::{MAX_SEALED, SealedFiles, SealedMap, SealedState, SealedTwins, sealed_of};
use crate::tree::{
    Difference, Excluded, ExcludedPath, ExclusionReason, Node, Snapshot, SnapshotRoot, TreeCursor, graft,
};

/// The paths of a move that are sealed in one of its snapshots and excluded in one of them.
#[derive(Debug, Default)]
pub(super) struct TrackedPaths(BTreeMap<String, BTreeSet<TreePath>>);

impl TrackedPaths {
    pub(super) fn of_plan<O: Objects + ?Sized>(
        objects: &O,
        present: &Snapshot,
        plan: &ReplayPlan,
    ) -> Result<Self, ObjectError> {
        let mut snapshots = vec![present.clone()];
        for step in plan.back.iter().chain(&plan.steps) {
            snapshots.push(load(objects, step.from)?);
            snapshots.push(load(objects, step.to)?);
        }
        Self::of(objects, &snapshots.iter().collect::<Vec<_>>())
    }

    pub(super) fn of<O: Objects + ?Sized>(objects: &O, snapshots: &[&Snapshot]) -> Result<Self, ObjectError> {
        let mut tracked = Self::default();
        for (name, paths) in sealed_paths(objects, snapshots)? {
            let mut found = BTreeSet::new();
            for root in snapshots.iter().filter_map(|snapshot| snapshot.root(&name)) {
                let mut side = Side::new(objects, root)?;
                for path in &paths {
                    let exists = side.sealed.get(path).is_some_and(|state| *state != SealedState::Nothing);
                    let is_excluded = exists || side.excluded.covers(&path.bytes());
                    if is_excluded && side.node(objects, path)?.is_none() {
                        found.insert(path.clone());
                    }
                }
            }
            tracked.0.insert(name, found);
        }
        Ok(tracked)
    }

    /// Whether a difference of captured nodes is at such a path. A folder is always an ordinary one.
    pub(super) fn covers(&self, root: &str, difference: &Difference) -> bool {
        let folder = [&difference.before, &difference.after].into_iter().flatten().any(Node::is_folder);
        !folder && self.0.get(root).is_some_and(|paths| paths.contains(&difference.path))
    }

    fn in_root(&self, root: &str) -> impl Iterator<Item = &TreePath> {
        self.0.get(root).into_iter().flatten()
    }
}

/// The captured nodes of these snapshots at paths that another one of them seals. A replay over the snapshots needs their
/// sealed states ([`SealedTwins`]).
pub fn nodes_to_seal<O: Objects + ?Sized>(
    objects: &O,
    snapshots: &[&Snapshot],
) -> Result<Vec<(TreePath, Node)>, ObjectError> {
    let mut found = Vec::new();
    for (name, paths) in sealed_paths(objects, snapshots)? {
        for root in snapshots.iter().filter_map(|snapshot| snapshot.root(&name)) {
            let mut side = Side::new(objects, root)?;
            for path in
                paths.iter().filter(|path| !side.sealed.contains_key(path)).cloned().collect::<Vec<_>>()
            {
                let Some(node) = side.node(objects, &path)? else { continue };
                let is_small = matches!(&node, Node::File { size, .. } if *size <= MAX_SEALED);
                let known = |(known, same): &(TreePath, Node)| *known == path && *same == node;
                if is_small && !found.iter().any(known) {
                    found.push((path, node));
                }
            }
        }
    }
    Ok(found)
}

/// The paths that any of these snapshots seals, by root.
fn sealed_paths<O: Objects + ?Sized>(
    objects: &O,
    snapshots: &[&Snapshot],
) -> Result<BTreeMap<String, BTreeSet<TreePath>>, ObjectError> {
    let mut paths: BTreeMap<String, BTreeSet<TreePath>> = BTreeMap::new();
    for root in snapshots.iter().flat_map(|snapshot| &snapshot.roots).filter(|root| root.sealed.is_some()) {
        paths.entry(root.name.clone()).or_default().extend(sealed_of(objects, Some(root))?.into_keys());
    }
    Ok(paths)
}

/// The root of one snapshot.
struct Side {
    tree: TreeCursor,
    sealed: SealedMap,
    excluded: Excluded,
}

/// A path in one snapshot: its sealed state, and its node if it is captured.
#[derive(Clone, Debug)]
struct TrackedState {
    state: SealedState,
    node: Option<Node>,
}

impl TrackedState {
    fn report(&self) -> Option<Node> {
        self.node.clone().or_else(|| self.state.node())
    }
}

impl Side {
    fn new<O: Objects + ?Sized>(objects: &O, root: &SnapshotRoot) -> Result<Self, ObjectError> {
        Ok(Self {
            tree: TreeCursor::new(root.tree),
            sealed: sealed_of(objects, Some(root))?,
            excluded: excluded::excluded(objects, root)?,
        })
    }

    fn node<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        path: &TreePath,
    ) -> Result<Option<Node>, ObjectError> {
        self.tree.get(objects, path)
    }

    /// The state of a path; `None` if it is unknown, or a captured folder.
    fn state<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        path: &TreePath,
        twins: &SealedTwins,
    ) -> Result<Option<TrackedState>, ObjectError> {
        let node = self.node(objects, path)?;
        if node.as_ref().is_some_and(Node::is_folder) {
            return Ok(None);
        }
        let state = match (self.sealed.get(path), &node) {
            (Some(state), _) => Some(state),
            (None, Some(node)) => twins.get(path, node),
            (None, None) if self.excluded.covers(&path.bytes()) => None,
            (None, None) => Some(&SealedState::Nothing),
        };
        Ok(state.cloned().map(|state| TrackedState { state, node }))
    }
}

/// The state of a sealed path after the steps applied so far.
struct SealedPathState {
    present: Option<TrackedState>,
    wanted: TrackedState,
    /// Whether it is captured now like any other file, and its sealed state is unknown.
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
    (plan, tracked): (&ReplayPlan, &TrackedPaths),
    on_conflict: OnConflict,
) -> Result<Vec<ReplayPath>, ObjectError> {
    let mut paths = Vec::new();
    for root in &present.roots {
        if tracked.in_root(&root.name).next().is_none() {
            continue;
        }
        let mut now = Side::new(additions, root)?;
        let mut carried: BTreeMap<TreePath, SealedPathState> = BTreeMap::new();
        let mut passed_over: BTreeMap<TreePath, TrackedState> = BTreeMap::new();
        for (number, step) in plan.back.iter().chain(&plan.steps).enumerate() {
            if number == plan.back.len() {
                for carried in carried.values_mut() {
                    carried.settled = true;
                }
            }
            let (from, to): (Snapshot, Snapshot) = (load(additions, step.from)?, load(additions, step.to)?);
            let (Some(from), Some(to)) = (from.root(&root.name), to.root(&root.name)) else { continue };
            let (mut from, mut to) = (Side::new(additions, from)?, Side::new(additions, to)?);
            if step.between_folders {
                // Sealed files stay in their folder, so only captured states can be compared.
                (from.sealed, to.sealed) = (SealedMap::new(), SealedMap::new());
            }
            for path in tracked.in_root(&root.name) {
                let before = from.state(additions, path, &plan.twins)?;
                let Some(after) = to.state(additions, path, &plan.twins)? else { continue };
                let Some(before) = before.filter(|before| !before.state.same(&after.state)) else { continue };
                // Paths that the reversed move skipped stay, as for all other files.
                if plan.is_exact(number) && on_conflict == OnConflict::Keep {
                    passed_over.insert(path.clone(), after);
                    continue;
                }
                if !carried.contains_key(path) {
                    let found = now.state(additions, path, &plan.twins)?;
                    let captured = found.is_none() && now.node(additions, path)?.is_some();
                    let wanted = found.clone().unwrap_or_else(|| before.clone());
                    let how = PathOutcome::Exact;
                    let state = SealedPathState { present: found, wanted, captured, how, settled: false };
                    carried.insert(path.clone(), state);
                }
                let Some(found) = carried.get_mut(path) else { continue };
                let is_untracked = found.present.is_none() && !found.captured;
                let untracked = if is_untracked && is_stored(additions, [&before.state, &after.state])? {
                    PathOutcome::NoLongerTracked
                } else {
                    PathOutcome::NotCaptured(ExclusionReason::NotSealed)
                };
                found.step(&before.state, after, on_conflict, untracked);
            }
        }
        if let Some(first) = plan.back.first() {
            let left: Snapshot = load(additions, first.from)?;
            let mut left = left.root(&root.name).map(|left| Side::new(additions, left)).transpose()?;
            for (path, theirs) in passed_over {
                let Some(left) = &mut left else { continue };
                let left = left.state(additions, &path, &plan.twins)?;
                let (Some(left), Some(here)) = (left, now.state(additions, &path, &plan.twins)?) else {
                    continue;
                };
                let is_changed = !here.state.same(&left.state) && !here.state.same(&theirs.state);
                if is_changed && !carried.contains_key(&path) {
                    let how = PathOutcome::Conflict { theirs: theirs.report(), kept: true };
                    let (present, wanted) = (Some(here.clone()), here);
                    carried.insert(
                        path,
                        SealedPathState { present, wanted, captured: false, how, settled: true },
                    );
                }
            }
        }
        paths.extend(settle(additions, root, wanted, carried, now.sealed)?);
    }
    Ok(paths)
}

/// Restores the sealed files of a selection from another snapshot.
pub(super) fn restore_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    (present, target): (&Snapshot, &Snapshot),
    wanted: &mut Snapshot,
    selection: &Selection,
    (tracked, twins): (&TrackedPaths, &SealedTwins),
) -> Result<Vec<ReplayPath>, ObjectError> {
    let mut paths = Vec::new();
    for root in &present.roots {
        let Some(there) = target.root(&root.name) else { continue };
        let (mut here, mut there) = (Side::new(additions, root)?, Side::new(additions, there)?);
        let mut carried = BTreeMap::new();
        for path in tracked.in_root(&root.name) {
            if !selection.covers(&RootPath { root: root.name.clone(), path: path.clone() }) {
                continue;
            }
            let before = here.state(additions, path, twins)?;
            let (Some(before), Some(after)) = (before, there.state(additions, path, twins)?) else {
                continue;
            };
            if before.state.same(&after.state) {
                continue;
            }
            let mut found = SealedPathState {
                present: Some(before.clone()),
                wanted: before.clone(),
                captured: false,
                how: PathOutcome::Exact,
                settled: false,
            };
            let untracked = PathOutcome::NotCaptured(ExclusionReason::NotSealed);
            found.step(&before.state, after, OnConflict::Keep, untracked);
            carried.insert(path.clone(), found);
        }
        paths.extend(settle(additions, root, wanted, carried, here.sealed)?);
    }
    Ok(paths)
}

impl SealedPathState {
    /// Applies a step; `untracked` is the outcome if the path is neither sealed nor captured in this folder.
    fn step(
        &mut self,
        before: &SealedState,
        after: TrackedState,
        on_conflict: OnConflict,
        untracked: PathOutcome,
    ) {
        if self.settled || !matches!(self.how, PathOutcome::Exact) || self.wanted.state.same(&after.state) {
            return;
        }
        if matches!(after.state, SealedState::NotStored { .. }) {
            self.how = PathOutcome::NotCaptured(ExclusionReason::NotSealed);
        } else if self.present.is_none() && !self.captured {
            self.how = untracked;
        } else if self.wanted.state.same(before) && !self.captured {
            self.wanted = after;
        } else {
            // Writing both versions of a secret between markers would be worse than either.
            let kept = on_conflict != OnConflict::Take;
            self.how = PathOutcome::Conflict { theirs: after.report(), kept };
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
    let Some(result) = wanted.roots.iter_mut().find(|found| found.name == root.name) else {
        return Ok(Vec::new());
    };
    let mut paths = Vec::new();
    let (mut after, excluded) = (TreeCursor::new(result.tree), excluded::excluded(additions, root)?);
    let (mut nodes, mut unknown) = (BTreeMap::new(), Vec::new());
    for (path, SealedPathState { present, mut wanted, mut how, .. }) in carried {
        let is_new = present.as_ref().is_none_or(|present| !present.state.same(&wanted.state));
        let is_written = is_new && matches!(wanted.state, SealedState::File(_));
        if is_written && is_below_file(additions, &mut after, &excluded, &path)? {
            how = PathOutcome::ParentNotFolder;
            wanted = present.clone().unwrap_or(TrackedState { state: SealedState::Nothing, node: None });
        }
        let changes = present.as_ref().is_some_and(|present| !present.state.same(&wanted.state));
        if changes {
            let now = after.get(additions, &path)?;
            let in_folder = match path.parent() {
                Some(above) => after.get(additions, &above)?.is_some_and(|node| node.is_folder()),
                None => true,
            };
            // Where the ignore rules will exclude it is not known before they moved too. The next snapshot
            // says so, and compares the sealed states.
            let node = wanted.node.clone().filter(|_| in_folder);
            if node.is_none() && !excluded.covers(&path.bytes()) {
                unknown.push(path.clone());
            }
            if node != now {
                nodes.insert(path.clone(), node);
            }
        }
        paths.push(ReplayPath {
            path: RootPath { root: root.name.clone(), path: path.clone() },
            present: present.as_ref().and_then(TrackedState::report),
            wanted: wanted.report(),
            how,
        });
        states.insert(path, wanted.state);
    }
    if !nodes.is_empty() {
        let tree = graft(additions, result.tree, &nodes)?;
        *result = with_tree(additions, result, tree)?;
        result.excluded = super::without(additions, result.excluded, &nodes)?;
    }
    if !unknown.is_empty() {
        let mut list = excluded::excluded(additions, result)?;
        let added = unknown.into_iter().map(|path| ExcludedPath {
            path: path.bytes(),
            reason: ExclusionReason::Ignored,
            kind: None,
        });
        list.0.extend(added);
        list.0.sort();
        result.excluded = Some(additions.add(&list));
    }
    if !paths.is_empty() {
        result.sealed = Some(additions.add(&SealedFiles::new(&states)));
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
