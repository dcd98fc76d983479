//! Resolves a request to the operation to publish and the file steps that go with it.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::object::{Additions, Objects, load};
use retake_model::operation::OperationKind;
use retake_model::path::RootPath;
use retake_model::replay::{self, FileStep, OnConflict, restore_paths};
use retake_model::tree::Snapshot;
use retake_store::{Queries, WriteTransaction};

use super::execute::{Compose, FilePlan};
use super::jump::{FolderChanges, changes_since};
use super::mode_bits::paths_with_mode_bits;
use super::moves::LABELS;
use super::planning::PlannedRequest;
use super::record_changes::changed_paths;
use super::restore::check_paths;
use super::route::shared_changes;
use super::sealed::{follow_captured, twins};
use super::uncaptured::uncaptured_paths;
use super::{FileError, PlanRequest, Scope, WorkingCopy};
use crate::write::change::{
    ComposedOperation, Composer, Head, check_kept, check_no_turn, head_of, stays_in_background,
};
use crate::write::moves::Destination;
use crate::{Caller, ChangeError, Command, Goal, Rules, Timeline};

/// The operation to publish.
#[derive(Clone, Debug)]
pub(super) enum PendingOperation {
    /// A move along the log.
    Move { goal: Goal, way: Destination },
    /// A restore of files.
    Restore { snapshot: ContentId },
    /// A change of the thread.
    Change(Command),
    /// A promotion, which changes two threads and no file.
    Promote,
}

/// The changes of files.
#[derive(Clone, Debug)]
pub(super) enum FileSteps {
    /// Replays changes on the current files.
    Replay(replay::ReplayPlan),
    /// Sets paths to their state in a snapshot: all of them if none is named. `passed` are the changes since.
    Restore { snapshot: ContentId, paths: Vec<RootPath>, passed: Vec<FileStep> },
}

/// A resolved request.
pub(super) struct ResolvedRequest {
    pub(super) pending_operation: PendingOperation,
    pub(super) steps: FileSteps,
    /// Paths that are undone although another run may have changed them.
    pub(super) shared: Vec<RootPath>,
    /// Whether the files of the entry at which it starts are unknown.
    pub(super) files_unknown: bool,
}

impl PlannedRequest {
    /// Resolves the request for a folder with these files.
    pub(super) fn resolve_request(
        &self,
        working_copy: &WorkingCopy,
        queries: &Queries<'_>,
        present: ContentId,
    ) -> Result<ResolvedRequest, FileError> {
        let (mut shared, mut files_unknown, mut only) = (Vec::new(), false, None);
        let (pending_operation, steps) = match &self.request {
            PlanRequest::Move(goal) => {
                let (pending_operation, way) =
                    working_copy.plan_move(queries, (self.thread, self.take), *goal, self.options.scope)?;
                shared = self.shared_steps(working_copy, queries, &pending_operation)?;
                // The route of a jump also passes changes that are already undone; the jump does not undo
                // those.
                only = matches!(goal, Goal::Jump(_)).then(|| way.steps.clone());
                (pending_operation, FileSteps::Replay(way))
            }
            PlanRequest::Restore { snapshot, paths } => {
                let (snapshot, paths) = (*snapshot, paths.clone());
                let (row, head) = head_of(queries, self.thread)?;
                let changes =
                    changes_since(queries, (row.number, head.version), snapshot, working_copy.here())?;
                let passed = changes.unwrap_or_default();
                (PendingOperation::Restore { snapshot }, FileSteps::Restore { snapshot, paths, passed })
            }
            PlanRequest::Change(command) => {
                let (reversals, unknown) = working_copy.steps_of(queries, self.thread, command, present)?;
                files_unknown = unknown;
                shared.extend(reversals.iter().filter(|reversal| reversal.shared).map(|shared| shared.step));
                let steps = reversals.into_iter().map(|reversal| reversal.step).collect();
                let way = replay::ReplayPlan::of(steps);
                (PendingOperation::Change(command.clone()), FileSteps::Replay(way))
            }
            PlanRequest::Promote { take, .. } => {
                working_copy.check_promotion(queries, self.thread, *take, present)?;
                (PendingOperation::Promote, FileSteps::Replay(replay::ReplayPlan::default()))
            }
            PlanRequest::OpenWorktree { .. } | PlanRequest::CloseWorktree { .. } => {
                unreachable!("a worktree changes no thread")
            }
        };
        let mut shared = paths_of(queries, &shared)?;
        if let Some(only) = only.filter(|_| !shared.is_empty()) {
            let only = paths_of(queries, &only)?;
            shared.retain(|path| only.contains(path));
        }
        let shared = shared.into_iter().collect();
        Ok(ResolvedRequest { pending_operation, steps, shared, files_unknown })
    }

    /// The steps of a move that undo possible changes of another run.
    fn shared_steps(
        &self,
        working_copy: &WorkingCopy,
        queries: &Queries<'_>,
        pending_operation: &PendingOperation,
    ) -> Result<Vec<FileStep>, FileError> {
        let Some(way) = pending_operation.way() else { return Ok(Vec::new()) };
        let row = queries.thread(self.thread)?.ok_or(ChangeError::NoSuchThread(self.thread))?;
        if let PlanRequest::Move(Goal::Jump(version)) = &self.request {
            let head = queries.last_operation(&row)?.operation.version;
            let changes = FolderChanges::since(queries, (row.number, head), *version, working_copy.here())?;
            return Ok(changes.shared());
        }
        let changes = shared_changes(queries, row.number, way.cursor.route(), working_copy.here())?;
        Ok(changes.into_iter().map(|files| FileStep::new(files.after, files.before)).collect())
    }

    /// Rejects requests that would remove the files, or the take itself, of a running turn.
    pub(super) fn check_turns(&self) -> Result<(), FileError> {
        let reader = self.timeline.read()?;
        let state = reader.state(self.thread)?;
        let runs = |take| self.timeline.store.is_turn_running(take);
        let name = |take| -> Result<String, FileError> {
            Ok(state.take(&reader.queries(), take)?.map(|take| take.name).unwrap_or_default())
        };
        match &self.request {
            PlanRequest::Promote { take, .. } if runs(*take)? => {
                Err(ChangeError::TurnRuns(name(*take)?).into())
            }
            PlanRequest::Change(command) if leaves_active(command, state.active) && runs(state.active)? => {
                Err(FileError::TurnRuns(name(state.active)?))
            }
            _ => Ok(()),
        }
    }
}

/// The files that steps touch.
fn paths_of(queries: &Queries<'_>, steps: &[FileStep]) -> Result<BTreeSet<RootPath>, FileError> {
    let mut paths = BTreeSet::new();
    for step in steps {
        let changed = changed_paths(queries, step.to, step.from)?;
        paths.extend(changed.into_iter().filter(|path| !path.is_folder()).map(|path| path.path));
    }
    Ok(paths)
}

/// Returns whether a command can make another take active.
pub(super) fn may_switch(command: &Command) -> bool {
    matches!(
        command,
        Command::Switch { .. }
            | Command::Keep { .. }
            | Command::Branch { .. }
            | Command::Fork { .. }
            | Command::Retry { .. }
            | Command::DeleteTake { .. }
    )
}

/// Returns whether a command always makes another take than this one active.
fn leaves_active(command: &Command, active: retake_model::id::TakeId) -> bool {
    match command {
        Command::Switch { take } | Command::Keep { take } => *take != active,
        Command::DeleteTake { take } => *take == active,
        Command::Retry { .. } | Command::Branch { .. } | Command::Fork { .. } => true,
        _ => false,
    }
}

impl PendingOperation {
    /// The destination of a move.
    pub(super) fn way(&self) -> Option<&Destination> {
        match self {
            Self::Move { way, .. } => Some(way),
            _ => None,
        }
    }

    /// Composes the operation inside a write, with that number of moved paths.
    pub(super) fn composing(self, order: &PlannedRequest, paths: u64) -> impl Compose {
        let order = order.clone();
        move |writing, at| self.compose(&order, paths, writing, at)
    }

    /// The operation.
    pub(super) fn compose<'writing, 'transaction>(
        self,
        order: &PlannedRequest,
        paths: u64,
        writing: &'writing WriteTransaction<'transaction>,
        at: &Head,
    ) -> Result<ComposedOperation<'writing, 'transaction>, FileError> {
        let (clock, rules, caller) = (&*order.timeline.clock, order.timeline.rules, &order.caller);
        let composer = Composer { writing, at, caller, clock, rules };
        let on_top = |kind| {
            let caller = Caller { take: order.take, ..caller.clone() };
            Composer { caller: &caller, rules: Rules::default(), ..composer }.same_state(kind)
        };
        match self {
            Self::Move { way, .. } if order.options.scope == Scope::Files => {
                Ok(on_top(OperationKind::FilesMoved { from: way.from, to: way.to, paths })?)
            }
            Self::Move { goal, way } => {
                let kind = goal.kind(way.from, way.to);
                Ok(composer.moved(&way.cursor, kind)?)
            }
            Self::Restore { snapshot } => Ok(on_top(OperationKind::FilesRestored { snapshot, paths })?),
            Self::Change(command) => {
                if at.state.deleted.is_some() {
                    return Err(ChangeError::ThreadDeleted.into());
                }
                let leases = order.timeline.store.turn_leases();
                if let Command::DeleteTake { take } = command {
                    check_no_turn(writing, at, &leases, Some(take))?;
                }
                let has_effect = match &command {
                    Command::Merge { entries, .. } => !entries.is_empty() || paths > 0,
                    _ => true,
                };
                if let Command::Keep { take } = command {
                    check_kept(writing, at, &leases, take)?;
                }
                // A turn that started in the meantime keeps its files.
                if stays_in_background(writing, order.thread, at.state.active, &leases, &command)? {
                    check_no_turn(writing, at, &leases, Some(at.state.active))?;
                }
                let composed = composer.command(command)?.filter(|_| has_effect);
                composed.ok_or_else(|| FileError::Unchanged(Box::new(at.unchanged())))
            }
            Self::Promote => unreachable!("a promotion is published by the timeline"),
        }
    }
}

/// The wanted files of a folder, and the steps of each path.
pub(super) fn plan_files<O: Objects + ?Sized>(
    timeline: &Timeline,
    objects: &O,
    present: &Snapshot,
    steps: &FileSteps,
    on_conflict: OnConflict,
) -> Result<FilePlan, FileError> {
    let mut additions = Additions::new(objects);
    let (mut replayed, sealed) = match steps {
        FileSteps::Replay(way) => {
            let mut snapshots = vec![present.clone()];
            for step in way.back.iter().chain(&way.steps) {
                snapshots.extend([load(objects, step.from)?, load(objects, step.to)?]);
            }
            let (twins, sealed) = twins(timeline, objects, &snapshots.iter().collect::<Vec<_>>())?;
            let way = replay::ReplayPlan { twins, ..way.clone() };
            (replay::replay(&mut additions, present, &way, on_conflict, LABELS)?, sealed)
        }
        FileSteps::Restore { snapshot, paths, passed } => {
            let target: Snapshot = load(objects, *snapshot)?;
            check_paths(objects, paths, present, &target)?;
            let (twins, sealed) = twins(timeline, objects, &[present, &target])?;
            (restore_paths(&mut additions, present, &target, paths, passed, &twins)?, sealed)
        }
    };
    follow_captured(timeline, &mut additions, present, &mut replayed.snapshot)?;
    for object in sealed {
        additions.add_bytes(object.kind, object.bytes.to_vec());
    }
    let wanted = additions.add(&replayed.snapshot);
    let mode_bits = paths_with_mode_bits(&additions, present, steps)?;
    let uncaptured = uncaptured_paths(&additions, present, &replayed)?;
    Ok(FilePlan { wanted, replayed, mode_bits, uncaptured, objects: additions.into_new() })
}

impl FilePlan {
    /// Number of paths that move.
    pub(super) fn moving(&self) -> u64 {
        self.replayed.paths.iter().filter(|path| path.present != path.wanted).count() as u64
    }
}
