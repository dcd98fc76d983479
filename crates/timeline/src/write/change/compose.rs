//! Composes the operation that follows a thread's newest one, without publishing it.

use retake_model::command::{CommandContext, CommandOutcome, apply};
use retake_model::content::ContentId;
use retake_model::history::{HistoryCursor, continues_typing, link_change, link_move, link_note};
use retake_model::id::TurnId;
use retake_model::intent::WorktreeTake;
use retake_model::object::{Additions, Objects};
use retake_model::operation::{Chains, FileChange, Operation, OperationKind, Provenance};
use retake_model::state::ThreadState;
use retake_model::summary::ThreadSummary;
use retake_store::{Queries, WriteTransaction};
use retake_workspace::folder::path_from_text;

use super::turn::{command_turn, previous_typing, running_turn};
use super::{Head, check_not_last, finish};
use crate::clock::{Clock, ClockIds};
use crate::files::anchor::commit_of;
use crate::working_copy::files_of_new_take;
use crate::write::moves::state_after;
use crate::{Caller, ChangeError, ChangeOutcome, Command, FileError, Rules};

/// Composes the next operation of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Composer<'at, 'writing, 'transaction> {
    pub(crate) writing: &'writing WriteTransaction<'transaction>,
    /// The thread before the operation.
    pub(crate) at: &'at Head,
    pub(crate) caller: &'at Caller,
    pub(crate) clock: &'at dyn Clock,
    pub(crate) rules: Rules,
}

/// An operation with its content, not published yet.
pub(crate) struct ComposedOperation<'writing, 'transaction> {
    pub(crate) operation: Operation,
    pub(crate) additions: Additions<'writing, Queries<'transaction>>,
}

impl<'writing, 'transaction> Composer<'_, 'writing, 'transaction> {
    /// The operation of a command; `None` if nothing changes.
    pub(crate) fn command(
        self,
        command: Command,
    ) -> Result<Option<ComposedOperation<'writing, 'transaction>>, ChangeError> {
        let Some(command) = with_marks(command, &self.at.row.summary) else { return Ok(None) };
        let mut additions = Additions::new(&**self.writing);
        match self.apply(command, &mut additions)? {
            CommandOutcome::Unchanged => Ok(None),
            CommandOutcome::Changed { state, kind } => self.change(additions, &state, kind).map(Some),
        }
    }

    /// The operation of a new take that stays in the background. Records the files that it would have, so that it has them
    /// when it gets a folder.
    pub(crate) fn background_take(
        self,
        command: Command,
    ) -> Result<Option<ComposedOperation<'writing, 'transaction>>, ChangeError> {
        let at = self.at;
        let mut additions = Additions::new(&**self.writing);
        let log = (at.row.number, &at.last.operation);
        let files = files_of_new_take(self.writing, log, &at.state, &command, &mut additions)?;
        let (state, kind) = match self.apply(command, &mut additions)? {
            CommandOutcome::Unchanged => return Ok(None),
            CommandOutcome::Changed { state, kind } => (state, kind),
        };
        let take = state.active;
        let state = ThreadState { active: at.state.active, ..state };
        let mut composed = self.change(additions, &state, kind)?;
        if let Some(snapshot) = files {
            composed.operation.last_file_operation = Some(composed.operation.version);
            composed.operation.files = Some(FileChange {
                before: snapshot,
                after: snapshot,
                take,
                worktree: true,
                left: None,
                shared: None,
            });
        }
        Ok(Some(composed))
    }

    fn apply(
        self,
        command: Command,
        additions: &mut Additions<'writing, Queries<'transaction>>,
    ) -> Result<CommandOutcome, ChangeError> {
        let taken = |name: &str| Ok(self.writing.take_named(self.at.row.number, name)?.is_some());
        let git_commit = commit_of(self.writing, self.at, &command, self.caller)?;
        let mut context = CommandContext {
            additions,
            fresh: &mut ClockIds(self.clock),
            take_named: &taken,
            git_commit: git_commit.as_deref(),
        };
        Ok(apply(&self.at.state, command, &mut context)?)
    }

    /// An operation that leaves the state unchanged.
    pub(crate) fn same_state(
        self,
        kind: OperationKind,
    ) -> Result<ComposedOperation<'writing, 'transaction>, ChangeError> {
        self.change(Additions::new(&**self.writing), &self.at.state, kind)
    }

    /// An operation that changes the state.
    pub(crate) fn change(
        self,
        mut additions: Additions<'writing, Queries<'transaction>>,
        state: &ThreadState,
        kind: OperationKind,
    ) -> Result<ComposedOperation<'writing, 'transaction>, ChangeError> {
        let Self { writing, at, caller, clock, rules } = self;
        let deleted = state.deleted.is_some() && at.state.deleted.is_none();
        if deleted || state.active != at.state.active || state.takes.len() < at.state.takes.len() {
            check_worktree(writing, &additions, at, state)?;
        }
        let after = additions.add(state);
        let (log, head) = (writing.log(at.row.number), at.last.operation.version);
        let take = match kind.take() {
            None if kind.changes_files_only() => Some(caller.take.unwrap_or(state.active)),
            take => take,
        };
        let running = running_turn(writing, at, &additions, take)?.filter(|_| !kind.is_not_undoable());
        let turn = match (running, caller.turn) {
            (Some(turn), _) if take.is_some() => turn,
            (_, Some(turn)) | (Some(turn), None) => turn,
            (None, None) => {
                match (command_turn(writing, at, take)?, previous_typing(writing, at, &kind, take)?) {
                    (Some(turn), _) if !kind.is_not_undoable() => turn,
                    (_, Some(last))
                        if continues_typing(&last, &kind, &caller.actor, clock.now(), rules.typing_pause) =>
                    {
                        last.turn
                    }
                    _ => TurnId::generate(&mut ClockIds(clock)),
                }
            }
        };
        let (place, chains) =
            if kind.is_not_undoable() { link_note(&log, head)? } else { link_change(&log, head, take)? };
        Ok(self.follow(additions, after, kind, turn, (place, chains)))
    }

    /// An operation that moves along the log.
    pub(crate) fn moved(
        self,
        cursor: &HistoryCursor,
        kind: OperationKind,
    ) -> Result<ComposedOperation<'writing, 'transaction>, ChangeError> {
        let Self { writing, at, .. } = self;
        let (log, head) = (writing.log(at.row.number), at.last.operation.version);
        let mut additions = Additions::new(&**writing);
        let state = state_after(writing, &mut additions, (at.row.number, head), &at.state, cursor)?;
        check_worktree(writing, &additions, at, &state)?;
        if state.deleted.is_some() && at.state.deleted.is_none() {
            check_not_last(writing, &at.row)?;
        }
        let turn = self.caller.turn.unwrap_or_else(|| TurnId::generate(&mut ClockIds(self.clock)));
        let after = additions.add(&state);
        let position = link_move(&log, head, cursor.view(), cursor.moves(&log)?)?;
        Ok(self.follow(additions, after, kind, turn, position))
    }

    /// Publishes an operation that changes the state.
    pub(crate) fn publish_change(
        self,
        additions: Additions<'writing, Queries<'transaction>>,
        state: &ThreadState,
        kind: OperationKind,
    ) -> Result<ChangeOutcome, ChangeError> {
        Ok(finish(self.writing, self.at, self.change(additions, state, kind)?)?.0)
    }

    /// Publishes a move along the log. Returns the thread after it, for the next move.
    pub(crate) fn publish_move(
        self,
        cursor: &HistoryCursor,
        kind: OperationKind,
    ) -> Result<(ChangeOutcome, Head), ChangeError> {
        finish(self.writing, self.at, self.moved(cursor, kind)?)
    }

    /// The operation after the newest one, at a position in the history.
    fn follow(
        self,
        mut additions: Additions<'writing, Queries<'transaction>>,
        after: ContentId,
        kind: OperationKind,
        turn: TurnId,
        (place, chains): (Provenance, Chains),
    ) -> ComposedOperation<'writing, 'transaction> {
        let (last, caller) = (&self.at.last, self.caller);
        let operation = Operation {
            thread: last.operation.thread,
            version: last.operation.version + 1,
            previous: Some(last.id),
            after,
            kind,
            turn,
            actor: caller.actor.clone(),
            // Versions are the order of the log. A time is only a reading of the clock, so that one operation with a
            // wrong time does not date those after it.
            time: self.clock.now(),
            place,
            environment: caller.environment.as_ref().map(|around| additions.add(around)),
            files: None,
            last_file_operation: last.operation.last_file_operation,
            request: caller.request,
            chains: Some(chains),
        };
        ComposedOperation { operation, additions }
    }
}

/// A command that sets the visibility of a thread, with all marks filled in; `None` if nothing changes. The marks are
/// in the thread's row and not in the state that commands apply to.
fn with_marks(command: Command, row: &ThreadSummary) -> Option<Command> {
    let Command::Share { visibility, private, shared_with_support } = command else { return Some(command) };
    let sharing = row.sharing().with(visibility, private, shared_with_support);
    (sharing != row.sharing()).then_some(Command::Share {
        visibility: Some(sharing.visibility),
        private: Some(sharing.private),
        shared_with_support: Some(sharing.shared_with_support),
    })
}

/// Checks that a take with a worktree still exists, that its thread is not deleted, and that it is not the active take.
fn check_worktree(
    writing: &WriteTransaction<'_>,
    objects: &impl Objects,
    at: &Head,
    state: &ThreadState,
) -> Result<(), ChangeError> {
    for folder in writing.folders()? {
        let Some(WorktreeTake { thread, take }) = folder.worktree else { continue };
        if thread != at.last.operation.thread {
            continue;
        }
        let comes_here = state.active == take && at.state.active != take;
        let deleted = state.deleted.is_some() && at.state.deleted.is_none();
        let Some(before) = at.state.take(&**writing, take)? else { continue };
        if comes_here || deleted || state.take(objects, take)?.is_none() {
            let path = path_from_text(folder.path());
            return Err(FileError::TakeHasWorktree { take: before.name, path }.into());
        }
    }
    Ok(())
}
