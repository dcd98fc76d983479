//! Computes the file changes of a move along the log.
//!
//! The route of a move ([`retake_model::history::Cursor`]) lists the changes that it passes, in order; those that changed
//! files are steps from snapshot to snapshot. A switch or branch on the route stands for the files of both takes at that
//! time. Later changes of a take, in a worktree that has since been removed, are added when the route enters the take and
//! removed when it leaves the take:
//!
//! ```text
//!   main   1 ─┬──────────── 3 (worktree)        undo of 2:  2 back, then 3 forward
//!   B         └ 2 branch                        redo of 2:  3 back, then 2 forward
//! ```

use std::collections::BTreeMap;

use retake_model::history::{self, OperationLog as _, RouteStep};
use retake_model::id::TakeId;
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::replay::{FileStep, ReplayPlan};
use retake_store::{Queries, StoreError};

use super::Scope;
use super::plan::{FileOperationWalk, FolderKind, steps_back};

/// The changes of a move to the files of a folder.
pub(super) fn steps_between(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    (moved, scope): (&crate::write::moves::Destination, Scope),
    here: FolderKind,
) -> Result<ReplayPlan, StoreError> {
    let back = steps_back(queries, thread, head, (moved, scope), here)?;
    let route = moved.cursor.route();
    // If only the files move, the takes stay as they are.
    let crosses = here == FolderKind::Project && scope != Scope::Files;
    let mut walk = Walk::new(queries, (thread, head), if crosses { route } else { &[] })?;
    let mut steps = Vec::new();
    for step in route {
        let crossing = walk.crossing(*step)?;
        if let Some(Crossing { left, .. }) = &crossing {
            let since = walk.changes_since(step.version(), *left)?;
            steps.extend(since.into_iter().rev().map(reversed));
        }
        steps.extend(file_step(queries, thread, *step, here)?);
        if let Some(Crossing { entered, .. }) = &crossing {
            steps.extend(walk.changes_since(step.version(), *entered)?);
        }
        walk.pass(*step)?;
    }
    // What an undo left, because the user had changed it, a redo leaves too. The next undo tries again.
    let only_back = route.iter().all(|step| matches!(step, RouteStep::Forward(_)));
    Ok(ReplayPlan { back, only_back, ..ReplayPlan::of(steps) })
}

/// A take on one side of a switch, and the position of its chain at that time.
type Side = (TakeId, Version);

/// A step of the thread that makes another take active.
struct Crossing {
    left: Side,
    entered: Side,
}

/// A walk along a route from take to take.
struct Walk<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    head: Version,
    crosses: bool,
    /// Positions of the takes' chains, as far as the route has moved them.
    positions: BTreeMap<TakeId, Version>,
    /// Manual edits in worktrees since the oldest step of the route.
    edits: Vec<(Version, FileChange)>,
}

impl<'queries, 'transaction> Walk<'queries, 'transaction> {
    fn new(
        queries: &'queries Queries<'transaction>,
        (thread, head): (i64, Version),
        route: &[RouteStep],
    ) -> Result<Self, StoreError> {
        let (crosses, positions) = (!route.is_empty(), BTreeMap::new());
        let mut walk = Self { queries, thread, head, crosses, positions, edits: Vec::new() };
        let mut oldest = None;
        for step in route {
            if walk.crossing(*step)?.is_some() {
                oldest = Some(oldest.map_or(step.version(), |oldest| step.version().min(oldest)));
            }
        }
        let Some(oldest) = oldest else { return Ok(walk) };
        for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
            let (operation, files) = last_file_operation?;
            if operation.version <= oldest {
                break;
            }
            if is_edit_in_worktree(&operation, &files) {
                walk.edits.push((operation.version, files));
            }
        }
        walk.edits.reverse();
        Ok(walk)
    }

    /// The takes that a step leaves and enters, if they differ.
    fn crossing(&self, step: RouteStep) -> Result<Option<Crossing>, StoreError> {
        let (log, version) = (self.queries.log(self.thread), step.version());
        if !self.crosses || version < 2 {
            return Ok(None);
        }
        let known = log.step(version)?;
        if known.chains.is_none() || known.take().is_some() {
            return Ok(None);
        }
        let side = |version: Version| -> Result<Side, StoreError> {
            let take = log.active(version)?;
            Ok((take, history::take_position(&log, version, take)?.position))
        };
        let (before, after) = (side(version - 1)?, side(version)?);
        Ok((before.0 != after.0).then_some(match step {
            RouteStep::Back(_) => Crossing { left: after, entered: before },
            RouteStep::Forward(_) => Crossing { left: before, entered: after },
        }))
    }

    /// The difference between the files of a take on the route and those at a step of the thread: its steps since, and
    /// manual edits in a worktree, which are no steps.
    fn changes_since(&self, version: Version, (take, then): Side) -> Result<Vec<FileStep>, StoreError> {
        let log = self.queries.log(self.thread);
        let now = match self.positions.get(&take) {
            Some(position) => *position,
            None => history::take_position(&log, self.head, take)?.position,
        };
        let (mut back, mut forward) = (Vec::new(), Vec::new());
        for step in history::route_between(&log, then, now)? {
            let Some(files) = file_step(self.queries, self.thread, step, FolderKind::Project)? else {
                continue;
            };
            match step {
                RouteStep::Back(_) => back.push(files),
                RouteStep::Forward(version) => forward.push((version, files)),
            }
        }
        let edits = self.edits.iter().filter(|(edited, files)| *edited > version && files.take == take);
        forward.extend(edits.map(|(edited, files)| (*edited, edit_step(files))));
        forward.sort_by_key(|(version, _)| *version);
        back.extend(forward.into_iter().map(|(_, step)| step));
        Ok(back)
    }

    fn pass(&mut self, step: RouteStep) -> Result<(), StoreError> {
        let version = step.version();
        let known = self.queries.log(self.thread).step(version)?;
        if let Some(take) = known.take() {
            let position = if matches!(step, RouteStep::Back(_)) { known.place.parent } else { version };
            self.positions.insert(take, position);
        }
        Ok(())
    }
}

/// Returns whether an operation records manual edits in a worktree.
pub(super) fn is_edit_in_worktree(operation: &Operation, files: &FileChange) -> bool {
    let is_edit = matches!(operation.kind, OperationKind::ExternalEdits { .. });
    is_edit && files.worktree && files.before != files.after
}

/// The same edit in the project's folder.
pub(super) fn edit_step(files: &FileChange) -> FileStep {
    FileStep::between_folders(files.before, files.after)
}

fn reversed(step: FileStep) -> FileStep {
    FileStep { from: step.to, to: step.from, ..step }
}

/// The change of a route's step to the files of a folder.
fn file_step(
    queries: &Queries<'_>,
    thread: i64,
    step: RouteStep,
    here: FolderKind,
) -> Result<Option<FileStep>, StoreError> {
    let Some(files) = files_on_route(queries, thread, step, here)? else { return Ok(None) };
    let made = if files.worktree && here == FolderKind::Project {
        FileStep::between_folders(files.before, files.after)
    } else {
        FileStep::new(files.before, files.after)
    };
    Ok(Some(if matches!(step, RouteStep::Back(_)) { reversed(made) } else { made }))
}

/// The files of a folder that a step of a route changes. The active take has all its files in the project's folder,
/// including those of its steps in a removed worktree.
fn files_on_route(
    queries: &Queries<'_>,
    thread: i64,
    step: RouteStep,
    here: FolderKind,
) -> Result<Option<FileChange>, StoreError> {
    let Some((operation, files)) = file_change(queries, thread, step.version())? else { return Ok(None) };
    // A step from before takes had chains may belong to another take.
    let is_of_take = operation.chains.is_some_and(|chains| chains.take == Some(files.take));
    let came_along = here == FolderKind::Project && files.worktree && is_of_take;
    Ok(Some(files).filter(|files| here.holds(files) || came_along))
}

/// Returns whether any step of a route changed files of a folder.
pub(super) fn changes_files(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: FolderKind,
) -> Result<bool, StoreError> {
    for step in route {
        if files_on_route(queries, thread, *step, here)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether any step of a route changed files in any folder.
pub(crate) fn changes_any_files(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
) -> Result<bool, StoreError> {
    for step in route {
        if file_change(queries, thread, step.version())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Changes on a route that are undone although another run may have made them.
pub(super) fn shared_changes(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: FolderKind,
) -> Result<Vec<FileChange>, StoreError> {
    let mut shared = Vec::new();
    for step in route.iter().filter(|step| matches!(step, RouteStep::Back(_))) {
        let files = files_on_route(queries, thread, *step, here)?;
        shared.extend(files.filter(|files| files.shared.is_some()));
    }
    Ok(shared)
}

/// Returns whether a route passes changes of files that are now in another folder.
pub(super) fn is_elsewhere(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: FolderKind,
    open: &[TakeId],
) -> Result<bool, StoreError> {
    for step in route {
        let Some((_, files)) = file_change(queries, thread, step.version())? else { continue };
        // The folder of a removed worktree is no longer used.
        let there = !files.worktree || open.contains(&files.take);
        if there && !here.holds(&files) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An operation that changed files.
fn file_change(
    queries: &Queries<'_>,
    thread: i64,
    version: Version,
) -> Result<Option<(Operation, FileChange)>, StoreError> {
    let missing = || StoreError::Damaged(format!("operation {version} is missing"));
    let operation = queries.operation(thread, version)?.ok_or_else(missing)?.operation;
    let files = operation.files.filter(|files| files.before != files.after);
    Ok(files.map(|files| (operation, files)))
}
