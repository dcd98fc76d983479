//! Replay: applies file changes, or their inverse, to the current files.
//!
//! Each change is a step from one snapshot to another and covers only the paths that differ between the two.
//! The steps are applied to the current files one after the other, path by path:
//!
//! ```text
//!   undo of  a ──► b  (the step from b to a)        the file is b now      ──► a
//!                                                   it is already a        ──► nothing to do
//!                                                   it was changed to b'   ──► merge of a and b' over b
//!                                                   they do not merge      ──► conflict; it stays b'
//! ```
//!
//! A move that directly reverses another move (a redo after an undo, or an undo after a redo) is exact: it restores
//! the paths that the other move changed. A redo also skips those that the undo skipped. If the user changed such a
//! file in between, including reverting or deleting it, the user's change stays. An undo must not skip them: they
//! still have the turn's changes.
//!
//! ```text
//!   redo of  a ──► b  after an undo that skipped the file        unchanged since    ──► it stays
//!                                                                changed since      ──► conflict; it stays
//!   undo of  a ──► b  after a redo that skipped the file         as without the redo
//! ```
//!
//! Paths that no step touches never change. After a conflict, later steps skip the path. A folder is removed
//! only if it is empty, and nothing is written where a folder was replaced by a file, or a file by a folder.

mod excluded;
mod path;
mod sealed;
mod selection;
mod settle;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::ContentId;
use crate::merge::MergeLabels;
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::{RootPath, TreePath};
use crate::sealed::SealedTwins;
use crate::tree::{
    Excluded, ExclusionReason, Node, Snapshot, SnapshotRoot, TreeCursor, compare, differences, graft,
};

pub use sealed::nodes_to_seal;

use sealed::TrackedPaths;
use selection::Selection;

/// A file change to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStep {
    /// The snapshot before the change.
    pub from: ContentId,
    /// The snapshot after the change.
    pub to: ContentId,
    /// Whether the snapshots are of different folders. Sealed files stay in their folder, so the sealed lists
    /// of two folders cannot be compared.
    pub between_folders: bool,
}

impl FileStep {
    /// A step between two snapshots of one folder.
    pub fn new(from: ContentId, to: ContentId) -> Self {
        Self { from, to, between_folders: false }
    }

    /// A step from a snapshot of one folder to a snapshot of another.
    pub fn between_folders(from: ContentId, to: ContentId) -> Self {
        Self { from, to, between_folders: true }
    }
}

/// All steps of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayPlan {
    /// Steps that reverse the moves from the target of this one to the current state, newest first. They
    /// decide every path that they touch.
    pub back: Vec<FileStep>,
    /// Whether no other path changes, with [`OnConflict::Keep`], if there are steps back.
    pub only_back: bool,
    /// The steps for all other paths, in order.
    pub steps: Vec<FileStep>,
    /// The changes that the steps sum up. Paths that one of them made excluded are reported; nothing is applied.
    pub passed: Vec<FileStep>,
    /// The sealed states of the nodes that [`nodes_to_seal`] lists.
    pub twins: SealedTwins,
}

impl ReplayPlan {
    /// These steps, in order.
    pub fn of(steps: Vec<FileStep>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// Whether the step with this index must leave the paths that the reversed moves did not touch.
    fn is_exact(&self, number: usize) -> bool {
        self.only_back && !self.back.is_empty() && number >= self.back.len()
    }
}

/// How to resolve a file with conflicting changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Keep the current file.
    #[default]
    Keep,
    /// Take the other version; the previous snapshot still has the current one.
    Take,
    /// Write both versions into the file with conflict markers; keep it if it is not text.
    Mark,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayResult {
    /// The resulting files; new content is in the additions.
    pub snapshot: Snapshot,
    /// Each path that a step touches, in order.
    pub paths: Vec<ReplayPath>,
}

/// The result for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayPath {
    /// The path.
    pub path: RootPath,
    /// The current node.
    pub present: Option<Node>,
    /// The resulting node.
    pub wanted: Option<Node>,
    /// How the result was determined.
    pub how: PathOutcome,
}

/// How the result for a path was determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathOutcome {
    /// The path was in the state before the step, or already in the state after it.
    Exact,
    /// The path had other changes, and both are merged.
    Merged,
    /// One snapshot of a step excludes the path, so its change is unknown; the path stays as it is.
    NotCaptured(ExclusionReason),
    /// A tool replaced the path while it was excluded, and the folder neither tracks its sealed bytes nor captures it now,
    /// for example because the ignore rules changed. The path stays as it is.
    NoLongerTracked,
    /// The file was removed. The target has an excluded folder there, whose content is unknown.
    ReplacedFolder(ExclusionReason),
    /// A file is where the path needs a folder.
    ParentNotFolder,
    /// The folder has no such root, so that the change cannot be applied.
    NoRoot,
    /// The path had other changes that do not merge.
    Conflict {
        /// The node that the step would have written.
        theirs: Option<Node>,
        /// Whether the step was left out, so that the result has only the effects of other steps.
        kept: bool,
    },
}

/// Applies steps to the current files, in order.
pub fn replay<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    plan: &ReplayPlan,
    on_conflict: OnConflict,
    labels: MergeLabels<'_>,
) -> Result<ReplayResult, ObjectError> {
    let mut touched: BTreeMap<RootPath, PathState> = BTreeMap::new();
    let mut unknown: BTreeMap<RootPath, PathOutcome> = BTreeMap::new();
    // Paths that the reversed move skipped, with the result that the steps would have given.
    let mut passed_over: BTreeMap<RootPath, Option<Node>> = BTreeMap::new();
    let tracked = TrackedPaths::of_plan(additions, present, plan)?;
    for (number, step) in plan.back.iter().chain(&plan.steps).enumerate() {
        if number == plan.back.len() {
            for touched in touched.values_mut() {
                touched.settled = true;
            }
        }
        let (from, to): (Snapshot, Snapshot) = (load(additions, step.from)?, load(additions, step.to)?);
        unknown.extend(changes_of_missing_roots(additions, present, &from, &to)?);
        for root in &present.roots {
            // A root that one side does not have was not changed by the step.
            let (Some(before), Some(after)) = (from.root(&root.name), to.root(&root.name)) else { continue };
            let comparison = compare(additions, Some(before), Some(after))?;
            let here = |path| RootPath { root: root.name.clone(), path };
            let uncaptured =
                comparison.unknown.into_iter().map(|(path, why)| (here(path), PathOutcome::NotCaptured(why)));
            unknown.extend(uncaptured);
            let mut now = TreeCursor::new(root.tree);
            // Example: a captured file became too large. The new content is not captured, but the old content
            // is.
            let restorable = comparison.excluded.into_iter().filter(|difference| difference.before.is_none());
            let mut differences: Vec<_> = comparison.known.into_iter().chain(restorable).collect();
            differences.sort_by(|left, right| left.path.cmp(&right.path));
            for difference in differences {
                if tracked.covers(&root.name, &difference) {
                    continue;
                }
                // Modes other than `KeepRecent` resolve all conflicts, including those that the reversed move
                // skipped.
                if plan.is_exact(number) && on_conflict == OnConflict::Keep {
                    let path = here(difference.path);
                    if !touched.contains_key(&path) {
                        passed_over.insert(path, difference.after);
                    }
                    continue;
                }
                path::carry(additions, root, &mut now, &mut touched, difference, on_conflict, labels)?;
            }
        }
    }
    if let Some(newest) = plan.back.first() {
        let left = load(additions, newest.from)?;
        path::report_changed(additions, present, &left, passed_over, &mut touched)?;
    }
    let target = plan.steps.last().or(plan.back.last()).map(|step| load(additions, step.to)).transpose()?;
    excluded::leave_excluded(additions, present, target.as_ref(), &mut touched)?;
    for (path, how) in excluded::left_behind(additions, present, &plan.passed)? {
        unknown.entry(path).or_insert(how);
    }
    settle::settle(additions, present, &mut touched)?;
    let mut snapshot = with_paths(additions, present, &touched)?;
    let mut paths: Vec<ReplayPath> = touched
        .into_iter()
        .map(|(path, touched)| ReplayPath {
            path,
            present: touched.present,
            wanted: touched.wanted,
            how: touched.how,
        })
        .collect();
    paths.extend(sealed::carry(additions, present, &mut snapshot, (plan, &tracked), on_conflict)?);
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(ReplayResult { snapshot, paths: excluded::with_unknown(paths, unknown) })
}

/// The paths of a step below roots that the current files do not have. A root that one side of the step does
/// not have was not changed by it.
fn changes_of_missing_roots<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    from: &Snapshot,
    to: &Snapshot,
) -> Result<Vec<(RootPath, PathOutcome)>, ObjectError> {
    let mut paths = Vec::new();
    for before in from.roots.iter().filter(|root| present.root(&root.name).is_none()) {
        let Some(after) = to.root(&before.name) else { continue };
        let differences = compare(additions, Some(before), Some(after))?.known;
        paths.extend(differences.into_iter().map(|difference| {
            (RootPath { root: before.name.clone(), path: difference.path }, PathOutcome::NoRoot)
        }));
    }
    Ok(paths)
}

/// Restores some paths of the current files from another snapshot, and returns the paths that differ. An
/// empty selection means all paths. `passed` are the changes since that snapshot, as in [`ReplayPlan`].
pub fn restore_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    target: &Snapshot,
    only: &[RootPath],
    passed: &[FileStep],
    twins: &SealedTwins,
) -> Result<ReplayResult, ObjectError> {
    let selection = Selection::new(only);
    let tracked = TrackedPaths::of(additions, &[present, target])?;
    let mut touched = BTreeMap::new();
    let mut unknown: BTreeMap<RootPath, PathOutcome> = BTreeMap::new();
    for root in &present.roots {
        let Some(wanted) = target.root(&root.name) else { continue };
        let here = |path| RootPath { root: root.name.clone(), path };
        let comparison = compare(additions, Some(root), Some(wanted))?;
        let uncaptured =
            comparison.unknown.into_iter().map(|(path, why)| (here(path), PathOutcome::NotCaptured(why)));
        unknown.extend(uncaptured.filter(|(path, _)| selection.covers(path) || selection.is_below(path)));
        // A file that is excluded now but was captured then is restored, for example one that became too
        // large.
        let restorable = comparison.excluded.into_iter().filter(|difference| difference.before.is_none());
        for difference in comparison.known.into_iter().chain(restorable) {
            if tracked.covers(&root.name, &difference) {
                continue;
            }
            let path = here(difference.path);
            // A missing parent folder of a restored path is restored too.
            let on_the_way = difference.before.is_none() && selection.is_below(&path);
            if selection.covers(&path) || on_the_way {
                let (present, wanted) = (difference.before, difference.after);
                touched.insert(path, PathState { present, wanted, how: PathOutcome::Exact, settled: false });
            }
        }
    }
    excluded::leave_excluded(additions, present, Some(target), &mut touched)?;
    for (path, how) in excluded::left_behind(additions, present, passed)? {
        if selection.covers(&path) || selection.is_below(&path) {
            unknown.entry(path).or_insert(how);
        }
    }
    settle::settle(additions, present, &mut touched)?;
    let mut snapshot = with_paths(additions, present, &touched)?;
    let mut paths: Vec<ReplayPath> = touched
        .into_iter()
        .map(|(path, PathState { present, wanted, how, .. })| ReplayPath { path, present, wanted, how })
        .collect();
    paths.extend(sealed::restore_paths(
        additions,
        (present, target),
        &mut snapshot,
        &selection,
        (&tracked, twins),
    )?);
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(ReplayResult { snapshot, paths: excluded::with_unknown(paths, unknown) })
}

/// The state of a path after the steps applied so far.
#[derive(Clone, Debug)]
struct PathState {
    present: Option<Node>,
    wanted: Option<Node>,
    how: PathOutcome,
    /// Later steps skip the path.
    settled: bool,
}

impl PathState {
    fn is_settled(&self) -> bool {
        self.settled || matches!(self.how, PathOutcome::Conflict { .. })
    }
}

/// Whether two nodes are equal for a single path. The content of folders has its own paths.
fn same(left: Option<&Node>, right: Option<&Node>) -> bool {
    match (left, right) {
        (Some(Node::Folder { mode: left, .. }), Some(Node::Folder { mode: right, .. })) => left == right,
        _ => left == right,
    }
}

/// The snapshot with the resulting node at each path.
pub fn graft_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    paths: &BTreeMap<RootPath, Option<Node>>,
) -> Result<Snapshot, ObjectError> {
    let mut roots = Vec::with_capacity(present.roots.len());
    for root in &present.roots {
        let here: BTreeMap<TreePath, Option<Node>> = paths
            .iter()
            .filter(|(path, _)| path.root == root.name)
            .map(|(path, node)| (path.path.clone(), node.clone()))
            .collect();
        if here.is_empty() {
            roots.push(root.clone());
            continue;
        }
        let tree = graft(additions, root.tree, &here)?;
        let excluded = without(additions, root.excluded, &here)?;
        roots.push(SnapshotRoot { excluded, ..with_tree(additions, root, tree)? });
    }
    Ok(Snapshot { roots })
}

/// The exclusion list without the paths where a captured node exists now.
fn without<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    list_id: Option<ContentId>,
    paths: &BTreeMap<TreePath, Option<Node>>,
) -> Result<Option<ContentId>, ObjectError> {
    let Some(id) = list_id else { return Ok(None) };
    let list: Excluded = load(additions, id)?;
    let count = list.0.len();
    let left = excluded::without(list, paths);
    Ok(match left.0.len() {
        0 => None,
        same if same == count => list_id,
        _ => Some(additions.add(&left)),
    })
}

/// The root with another tree and updated counts.
fn with_tree(
    objects: &(impl Objects + ?Sized),
    root: &SnapshotRoot,
    tree: ContentId,
) -> Result<SnapshotRoot, ObjectError> {
    let (mut files, mut bytes) = (root.files, root.bytes);
    for difference in differences(objects, Some(root.tree), Some(tree))? {
        let (gone, come) = (file_counts(difference.before.as_ref()), file_counts(difference.after.as_ref()));
        files = (files + come.0).saturating_sub(gone.0);
        bytes = (bytes + come.1).saturating_sub(gone.1);
    }
    Ok(SnapshotRoot { tree, files, bytes, ..root.clone() })
}

fn file_counts(node: Option<&Node>) -> (u64, u64) {
    match node {
        Some(Node::File { size, .. }) => (1, *size),
        Some(Node::Link { .. }) => (1, 0),
        Some(Node::Folder { .. }) | None => (0, 0),
    }
}

fn with_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    touched: &BTreeMap<RootPath, PathState>,
) -> Result<Snapshot, ObjectError> {
    let mut changes = BTreeMap::new();
    for (path, touched) in touched {
        if !same(touched.present.as_ref(), touched.wanted.as_ref()) {
            changes.insert(path.clone(), settle::as_grafted(additions, touched));
        }
    }
    graft_paths(additions, present, &changes)
}
