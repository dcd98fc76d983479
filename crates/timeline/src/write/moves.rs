//! Undo, redo and jump. Each is one operation, whatever its number of steps.
//!
//! A move belongs to a take: the named one, the one of the current worktree, or else the active one. It moves along the
//! chains of that take and of the thread ([`retake_model::history`]); the new state follows from the resulting
//! positions, so that other takes stay unchanged.

use std::collections::BTreeSet;

use retake_model::command::CommandError;
use retake_model::history::{
    HistoryCursor, HistoryView, OperationLog as _, RouteStep, Unit, thread_position,
};
use retake_model::id::{TakeId, ThreadId};
use retake_model::list::{List, TakeCell};
use retake_model::object::{Additions, load};
use retake_model::operation::{OperationKind, Version};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{Queries, StoreError, WriteTransaction};
use serde::Serialize;

use crate::working_copy::{changes_any_files, has_files};
use crate::write::change::{Composer, Head};
use crate::write::promote::follow;
use crate::{Caller, ChangeError, ChangeOutcome, FileError, Rules, Timeline};

/// The outcome of an undo, redo or jump. It is durable.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryMove {
    /// The operation of the move: one, whatever the number of steps.
    #[serde(flatten)]
    pub done: ChangeOutcome,
    /// Number of steps; fewer than requested if there were no more.
    pub steps: u64,
    /// The newest change that is not undone, in the take and the thread.
    pub position: Version,
    /// Whether another undo is possible.
    pub can_undo: bool,
    /// Whether a redo is possible.
    pub can_redo: bool,
    /// Threads that were deleted or restored together, because a take had been promoted.
    pub also: Vec<ThreadId>,
    /// The changes that were undone and redone, in order.
    #[serde(skip)]
    pub route: Vec<RouteStep>,
}

/// Target of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Back by that many steps.
    Undo(Unit, u64),
    /// Back by whole steps until every change after an operation is undone.
    UndoTo(Unit, Version),
    /// Forward by that many steps.
    Redo(Unit, u64),
    /// To the state after an operation.
    Jump(Version),
}

impl Timeline {
    /// Undoes that many steps.
    pub fn undo(
        &self,
        thread: ThreadId,
        unit: Unit,
        steps: u64,
        caller: Caller,
    ) -> Result<HistoryMove, ChangeError> {
        self.go(thread, Goal::Undo(unit, steps), caller)
    }

    /// Redoes that many steps.
    pub fn redo(
        &self,
        thread: ThreadId,
        unit: Unit,
        steps: u64,
        caller: Caller,
    ) -> Result<HistoryMove, ChangeError> {
        self.go(thread, Goal::Redo(unit, steps), caller)
    }

    /// Moves the active take and the thread to their state after operation `version`.
    pub fn jump(
        &self,
        thread: ThreadId,
        version: Version,
        caller: Caller,
    ) -> Result<HistoryMove, ChangeError> {
        self.go(thread, Goal::Jump(version), caller)
    }

    /// Moves the conversation of the active take as one operation. Files stay as they are: [`crate::WorkingCopy::go`]
    /// moves both.
    pub fn go(&self, thread: ThreadId, goal: Goal, caller: Caller) -> Result<HistoryMove, ChangeError> {
        self.go_in(thread, None, goal, caller)
    }

    /// Moves the conversation of a take; of the active one if `None`.
    pub fn go_in(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
        goal: Goal,
        caller: Caller,
    ) -> Result<HistoryMove, ChangeError> {
        let moved = self.move_conversation(thread, take, goal, caller, RouteFiles::Leave)?;
        Ok(moved.expect("a move that leaves files is never refused for them"))
    }

    /// Moves the conversation if its route allows it. `None` if the thread has files, including those of a command or
    /// tool that has just started, although it should have none.
    pub(crate) fn move_conversation(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
        goal: Goal,
        caller: Caller,
        files: RouteFiles,
    ) -> Result<Option<HistoryMove>, ChangeError> {
        self.settled(|| {
            let (clock, rules, caller) = (self.clock.clone(), self.rules, caller.clone());
            let moved = self.store.write(move |writing| -> Result<Option<HistoryMove>, ChangeError> {
                let start = Head::of(writing, thread, &caller)?;
                check_take(writing, &start.state, take)?;
                let view = view_of(writing, thread, &start.state, take)?;
                let worktree = view.worktree.then_some(view.take);
                let head = start.last.operation.version;
                if files == RouteFiles::Absent
                    && has_files(writing, thread, worktree)?
                    && !goal.only_restores_thread(
                        writing,
                        (start.row.number, head),
                        &start.state,
                        rules,
                        &view,
                    )?
                {
                    return Ok(None);
                }
                let log = (start.row.number, head);
                let way = goal.destination_of_conversation(writing, log, rules, view, files)?;
                if way.cursor.route().is_empty() {
                    let nothing = Destination { steps: 0, ..way };
                    let done = start.unchanged();
                    return status_after(writing, &start, take, nothing, Vec::new(), done).map(Some);
                }
                files.check(writing, start.row.number, &start.state, &way)?;
                let kind = goal.kind(way.from, way.to);
                let also = follow(writing, &start, way.cursor.thread().position, &caller, &*clock)?;
                let composer = Composer { writing, at: &start, caller: &caller, clock: &*clock, rules };
                let (done, now) = composer.publish_move(&way.cursor, kind)?;
                status_after(writing, &now, take, way, also, done).map(Some)
            })?;
            Ok(moved)
        })
    }
}

/// Rejects a jump in a take that is not the active one to a version from before the take. The thread does not move with
/// such a take, so that the jump would end somewhere else.
fn check_take_then(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    version: Version,
    cursor: &HistoryCursor,
) -> Result<(), ChangeError> {
    let take = cursor.view();
    let state = |version: Version| -> Result<ThreadState, ChangeError> {
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        Ok(load(queries, queries.operation(thread, version)?.ok_or_else(missing)?.operation.after)?)
    };
    if !cursor.stays_in_take() || state(version)?.take(queries, take)?.is_some() {
        return Ok(());
    }
    let log = queries.log(thread);
    let mut first = thread_position(&log.step(head)?, head).position;
    while first > 1 && log.step(first)?.created_take != Some(take) {
        first = log.step(first)?.place.parent;
    }
    let take = state(head)?.take(queries, take)?.map(|take| take.name).unwrap_or_default();
    Err(ChangeError::NoSuchTakeThen { take, asked: version, first })
}

/// Returns whether any step of a route is more than a move of files. A move of only the conversation skips other steps,
/// which it would pass without effect.
fn changes_conversation(queries: &Queries<'_>, thread: i64, route: &[RouteStep]) -> Result<bool, StoreError> {
    for step in route {
        let found = queries.operation(thread, step.version())?;
        let kind = found.map(|found| found.operation.kind);
        if !matches!(kind, Some(OperationKind::FilesMoved { .. } | OperationKind::FilesRestored { .. })) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a move of only the conversation does about file changes on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteFiles {
    /// The files stay as they are.
    Leave,
    /// The thread has no files, or is only restored after a deletion; rejects the move if that changed.
    Absent,
    /// Rejects the move: the files of the take are in no folder and would no longer match its conversation.
    Refuse,
}

impl RouteFiles {
    pub(crate) fn check(
        self,
        queries: &Queries<'_>,
        thread: i64,
        state: &ThreadState,
        way: &Destination,
    ) -> Result<(), ChangeError> {
        if self == Self::Refuse && changes_any_files(queries, thread, way.cursor.route())? {
            let take = state.take(queries, way.now.0)?.map(|take| take.name).unwrap_or_default();
            return Err(FileError::NoFolder(take).into());
        }
        Ok(())
    }
}

/// Rejects a take that the thread does not have.
pub(crate) fn check_take(
    queries: &Queries<'_>,
    state: &ThreadState,
    take: Option<TakeId>,
) -> Result<(), ChangeError> {
    match take {
        Some(take) if state.take(queries, take)?.is_none() => Err(CommandError::NoSuchTake.into()),
        _ => Ok(()),
    }
}

/// The take of a move: the named one if it still exists, or the active one.
pub(crate) fn view_of(
    queries: &Queries<'_>,
    thread: ThreadId,
    state: &ThreadState,
    take: Option<TakeId>,
) -> Result<HistoryView, StoreError> {
    let other = match take.filter(|take| *take != state.active) {
        Some(take) => state.take(queries, take)?.map(|take| take.id),
        None => None,
    };
    let folders = queries.folders()?;
    let worktrees: BTreeSet<TakeId> = folders
        .iter()
        .filter_map(|folder| folder.worktree)
        .filter(|worktree| worktree.thread == thread)
        .map(|worktree| worktree.take)
        .collect();
    Ok(HistoryView { take: other.unwrap_or(state.active), worktree: other.is_some(), worktrees })
}

/// The destination of a move, before anything moves.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// The chains at the destination, and the route to it.
    pub(crate) cursor: HistoryCursor,
    /// The newest change that is not undone now.
    pub(crate) from: Version,
    /// The newest change that is not undone at the destination.
    pub(crate) to: Version,
    /// Number of steps; fewer than requested if there are no more.
    pub(crate) steps: u64,
    /// Current positions: the take, its position, the position of the thread.
    pub(crate) now: (TakeId, Version, Version),
}

impl Goal {
    /// The destination from the head of a thread's log.
    pub(crate) fn destination(
        self,
        queries: &Queries<'_>,
        thread: i64,
        head: Version,
        rules: Rules,
        view: HistoryView,
    ) -> Result<Destination, ChangeError> {
        let cursor = HistoryCursor::new(&queries.log(thread), head, view)?;
        self.destination_from(queries, thread, head, rules, cursor, &|_| Ok(true))
    }

    /// The destination of a move of the conversation. If files stay, moves of only the files do not count.
    pub(crate) fn destination_of_conversation(
        self,
        queries: &Queries<'_>,
        (thread, head): (i64, Version),
        rules: Rules,
        view: HistoryView,
        files: RouteFiles,
    ) -> Result<Destination, ChangeError> {
        let counts = |route: &[RouteStep]| {
            Ok(files != RouteFiles::Leave || changes_conversation(queries, thread, route)?)
        };
        let cursor = HistoryCursor::new(&queries.log(thread), head, view)?;
        self.destination_from(queries, thread, head, rules, cursor, &counts)
    }

    /// The destination from another cursor; counts only steps for which `counts` returns true.
    pub(crate) fn destination_from(
        self,
        queries: &Queries<'_>,
        thread: i64,
        head: Version,
        rules: Rules,
        mut cursor: HistoryCursor,
        counts: &dyn Fn(&[RouteStep]) -> Result<bool, StoreError>,
    ) -> Result<Destination, ChangeError> {
        let log = queries.log(thread);
        let (from, now) = (cursor.position(&log)?, cursor.place(&log)?);
        let (most, unit) = match self {
            Self::Jump(asked) | Self::UndoTo(_, asked) if asked == 0 || asked > head => {
                return Err(ChangeError::NoSuchVersion { asked, current: head });
            }
            Self::Jump(version) => {
                check_take_then(queries, thread, head, version, &cursor)?;
                cursor.jump(&log, version)?;
                let to = cursor.position(&log)?;
                return Ok(Destination { cursor, from, to, steps: 1, now });
            }
            Self::UndoTo(unit, _) => (u64::MAX, unit),
            Self::Undo(unit, steps) | Self::Redo(unit, steps) => (steps, unit),
        };
        let (mut steps, mut reached) = (0, None);
        while steps < most {
            if let Self::UndoTo(_, version) = self
                && cursor.position(&log)? <= version
            {
                break;
            }
            let passed = cursor.route().len();
            let moved = match self {
                Self::Redo(..) => cursor.redo(&log, unit)?,
                _ => cursor.undo(&log, unit)?,
            };
            if !moved {
                break;
            }
            if matches!(self, Self::Redo(..)) {
                cursor = past_restored_deletion(queries, thread, cursor)?;
            }
            if let (Self::Undo(..) | Self::UndoTo(..), Some(depth)) = (self, rules.depth)
                && cursor.is_deeper_than(&log, depth)?
            {
                if reached.is_none() || matches!(self, Self::UndoTo(..)) {
                    return Err(ChangeError::TooDeep(depth));
                }
                break;
            }
            if counts(&cursor.route()[passed..])? {
                steps += 1;
                reached = Some(cursor.clone());
            }
        }
        let mut cursor = reached.ok_or(match self {
            Self::Redo(..) => ChangeError::NothingToRedo,
            _ => ChangeError::NothingToUndo,
        })?;
        let to = cursor.position(&log)?;
        Ok(Destination { cursor, from, to, steps, now })
    }

    /// Returns whether the move only restores a deleted thread. A deletion changes no files, so neither does this move;
    /// and changes found in the folder since do not belong to a deleted thread.
    pub(crate) fn only_restores_thread(
        self,
        queries: &Queries<'_>,
        (thread, head): (i64, Version),
        state: &ThreadState,
        rules: Rules,
        view: &HistoryView,
    ) -> Result<bool, ChangeError> {
        if state.deleted.is_none() {
            return Ok(false);
        }
        let way = self.destination(queries, thread, head, rules, view.clone())?;
        for step in way.cursor.route() {
            let found = queries.operation(thread, step.version())?;
            let kind = found.map(|found| found.operation.kind);
            if !matches!(kind, Some(OperationKind::Deleted | OperationKind::Restored)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The operation kind of the move.
    pub(crate) fn kind(self, from: Version, to: Version) -> OperationKind {
        match self {
            Self::Undo(..) | Self::UndoTo(..) => OperationKind::Undone { from, to },
            Self::Redo(..) => OperationKind::Redone { from, to },
            Self::Jump(_) => OperationKind::Jumped { from, to },
        }
    }
}

/// The cursor after the restoration of a thread, if the deletion before it was just redone: a restored thread stays
/// restored.
fn past_restored_deletion(
    queries: &Queries<'_>,
    thread: i64,
    cursor: HistoryCursor,
) -> Result<HistoryCursor, ChangeError> {
    let last_is = |cursor: &HistoryCursor, kind: &OperationKind| -> Result<bool, StoreError> {
        let Some(step) = cursor.route().last() else { return Ok(false) };
        Ok(queries.operation(thread, step.version())?.is_some_and(|found| found.operation.kind == *kind))
    };
    if !last_is(&cursor, &OperationKind::Deleted)? {
        return Ok(cursor);
    }
    let mut ahead = cursor.clone();
    let moved = ahead.redo(&queries.log(thread), Unit::Operation)?;
    Ok(if moved && last_is(&ahead, &OperationKind::Restored)? { ahead } else { cursor })
}

/// The state at a cursor. It depends only on the positions of the chains and not on the route: the thread is as after
/// its last step that is not undone, and each take as after the last step that touched it.
pub(crate) fn state_after(
    queries: &Queries<'_>,
    additions: &mut Additions<'_, Queries<'_>>,
    (thread, head): (i64, Version),
    present: &ThreadState,
    cursor: &HistoryCursor,
) -> Result<ThreadState, ChangeError> {
    let log = queries.log(thread);
    let load_state = |version: Version| -> Result<ThreadState, ChangeError> {
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        Ok(load(queries, queries.operation(thread, version)?.ok_or_else(missing)?.operation.after)?)
    };
    let mut moved: BTreeSet<TakeId> = cursor.takes(&log)?.into_iter().map(|moved| moved.take).collect();
    let position = cursor.thread().position;
    let mut state = present.clone();
    let mut touched = moved.clone();
    if position != thread_position(&log.step(head)?, head).position {
        state = load_state(position)?;
        if cursor.reaches_all_takes(&log)? {
            moved.extend(state.all_takes(queries)?.into_iter().map(|take| take.id));
        }
        for hunk in List::diff(queries, &state.takes, &present.takes)? {
            touched.extend(hunk.removed.iter().chain(&hunk.added).map(|cell: &TakeCell| cell.take));
        }
        touched.extend(&moved);
    }
    for id in touched {
        // A take that does not exist there remains in its chain and returns with the step that created it.
        let Some((place, there)) = state.takes.find(additions, id.bytes())? else { continue };
        let take = match present.take(queries, id)? {
            Some(take) if !moved.contains(&id) => take,
            _ => {
                let missing = || StoreError::Damaged(format!("take {id} is missing where its chain is"));
                let origin = load_state(cursor.origin(&log, id)?)?;
                origin.take(queries, id)?.ok_or_else(missing)?
            }
        };
        // The name of a take belongs to the thread.
        let name = load::<Take>(additions, there.content)?.name;
        let content = additions.add(&Take { name, ..take });
        state.takes =
            state.takes.splice(additions, place..place + 1, vec![TakeCell { take: id, content }])?;
    }
    Ok(state)
}

/// The undo status of the take after a move.
fn status_after(
    writing: &WriteTransaction<'_>,
    at: &Head,
    take: Option<TakeId>,
    way: Destination,
    also: Vec<ThreadId>,
    done: ChangeOutcome,
) -> Result<HistoryMove, ChangeError> {
    let view = view_of(writing, at.row.summary.id, &at.state, take)?;
    let status = undo_availability(writing, at.row.number, at.last.operation.version, view)?;
    let UndoAvailability { position, can_undo, can_redo } = status;
    let (steps, route) = (way.steps, way.cursor.route().to_vec());
    Ok(HistoryMove { steps, position, can_undo, can_redo, also, done, route })
}

/// Whether undo and redo are possible in a take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoAvailability {
    pub(crate) position: Version,
    pub(crate) can_undo: bool,
    pub(crate) can_redo: bool,
}

/// The undo status of a take at a version of its thread.
pub(crate) fn undo_availability(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    view: HistoryView,
) -> Result<UndoAvailability, StoreError> {
    let log = queries.log(thread);
    let mut cursor = HistoryCursor::new(&log, head, view)?;
    let position = cursor.position(&log)?;
    let can_undo = cursor.clone().undo(&log, Unit::Operation)?;
    let can_redo = cursor.redo(&log, Unit::Operation)?;
    Ok(UndoAvailability { position, can_undo, can_redo })
}

/// The change that an undo in that take, or in the active one, reverts first.
pub(crate) fn next_undo(
    queries: &Queries<'_>,
    at: &retake_store::ThreadHead,
    take: Option<TakeId>,
) -> Result<Option<Version>, StoreError> {
    let (log, head) = (queries.log(at.row.number), &at.last.operation);
    let mut cursor = HistoryCursor::new(&log, head.version, view_of(queries, head.thread, &at.state, take)?)?;
    cursor.undo(&log, Unit::Operation)?;
    Ok(cursor.route().first().map(|step| step.version()))
}
