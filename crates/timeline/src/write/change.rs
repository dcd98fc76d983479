//! Changes a thread: from the newest state to the next, published as one operation.

mod running;
mod turn;

use std::cmp::Reverse;
use std::ops::Deref;

use retake_model::command::{CommandContext, CommandOutcome, apply};
use retake_model::content::ContentId;
use retake_model::history::{HistoryCursor, continues_typing, link_change, link_move, link_note};
use retake_model::id::{ProjectId, TakeId, ThreadId, TurnId};
use retake_model::intent::WorktreeTake;
use retake_model::object::{Additions, Objects};
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::state::ThreadState;
use retake_model::summary::ThreadSummary;
use retake_store::{Publication, Queries, StoreError, ThreadFilter, ThreadRow, TurnLeases, WriteTransaction};
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use crate::clock::{Clock, ClockIds};
use crate::files::anchor::commit_of;
use crate::working_copy::files_of_new_take;
use crate::write::moves::{next_undo, state_after};
use crate::{Caller, ChangeError, Command, FileError, Rules, Timeline};

pub(crate) use self::running::check_no_turn;
use self::running::check_turns;
use self::turn::{command_turn, previous_typing, running_turn};

/// The outcome of a change. It is durable.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeOutcome {
    /// The thread.
    pub thread: ThreadId,
    /// The version after the change.
    pub version: Version,
    /// The new operation; `null` if the thread already was as requested.
    pub operation: Option<ContentId>,
    /// The kind of the operation.
    pub kind: Option<OperationKind>,
    /// Whether undo reverts it: in the changed take, or in the active one for a change of the thread.
    pub undoable: bool,
    /// The changed take; `None` for a change of the thread.
    #[serde(skip)]
    pub take: Option<TakeId>,
    /// Bytes of new content.
    pub new_bytes: u64,
    /// Summary of the thread for lists.
    #[serde(skip)]
    pub summary: ThreadSummary,
}

impl ChangeOutcome {
    /// Returns whether anything changed.
    pub fn changed(&self) -> bool {
        self.operation.is_some()
    }
}

impl Timeline {
    /// Applies a command to the newest state of a thread.
    pub fn change(
        &self,
        thread: ThreadId,
        command: Command,
        caller: Caller,
    ) -> Result<ChangeOutcome, ChangeError> {
        let command = self.with_shared_role(thread, command)?;
        let recorded = self.record_shared(thread, &command)?;
        let done = self.change_thread(thread, command, caller);
        if done.is_err() {
            self.revert_shared(recorded)?;
        }
        done
    }

    fn change_thread(
        &self,
        thread: ThreadId,
        command: Command,
        caller: Caller,
    ) -> Result<ChangeOutcome, ChangeError> {
        self.settled(|| {
            let (command, caller, clock, rules) =
                (command.clone(), caller.clone(), self.clock.clone(), self.rules);
            let leases = self.store.turn_leases();
            let done = self.store.write(move |writing| {
                let at = Head::of(writing, thread, &caller)?;
                change(writing, &at, command, &caller, &*clock, rules, &leases)
            })?;
            Ok(done)
        })
    }

    /// Creates a take in the background: the active take stays active, and no file moves.
    pub(crate) fn change_in_background(
        &self,
        thread: ThreadId,
        command: Command,
        caller: Caller,
    ) -> Result<ChangeOutcome, ChangeError> {
        self.settled(|| {
            let (command, caller, clock, rules) =
                (command.clone(), caller.clone(), self.clock.clone(), self.rules);
            let done = self.store.write(move |writing| {
                let at = Head::of(writing, thread, &caller)?;
                if at.state.deleted.is_some() {
                    return Err(ChangeError::ThreadDeleted);
                }
                match compose_in_background(writing, &at, command, &caller, &*clock, rules)? {
                    None => Ok(at.unchanged()),
                    Some(composed) => Ok(finish(writing, &at, composed)?.0),
                }
            })?;
            Ok(done)
        })
    }
}

/// Returns whether a new take stays in the background: a turn is running in the active take, whose files are in the
/// folder, or the source take has a worktree.
pub(crate) fn stays_in_background(
    queries: &Queries<'_>,
    thread: ThreadId,
    active: TakeId,
    leases: &TurnLeases,
    command: &Command,
) -> Result<bool, StoreError> {
    let (Command::Branch { from, .. } | Command::Fork { from, .. }) = command else { return Ok(false) };
    if leases.is_turn_running(active)? {
        return Ok(true);
    }
    let open = |worktree: WorktreeTake| worktree.thread == thread && worktree.take == *from;
    Ok(queries.folders()?.iter().any(|folder| folder.worktree.is_some_and(open)))
}

/// Applies a command inside a write.
pub(crate) fn change(
    writing: &WriteTransaction<'_>,
    at: &Head,
    command: Command,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
    leases: &TurnLeases,
) -> Result<ChangeOutcome, ChangeError> {
    check_turns(writing, at, leases, &command)?;
    if at.state.deleted.is_some() && !matches!(command, Command::Restore | Command::Delete) {
        return Err(ChangeError::ThreadDeleted);
    }
    if let Command::Rename { title } = &command {
        title_is_free(writing, &at.row, title)?;
    }
    if matches!(command, Command::Delete) && at.state.deleted.is_none() {
        check_not_last(writing, &at.row)?;
    }
    let (command, settings) = without_settings(command);
    let (mut own, mut set) = (caller.clone(), None);
    if let Some((turn, values)) = settings {
        own.turn = own.turn.or(Some(turn));
        let command = Command::Set { values };
        if let Some(composed) = compose_command(writing, at, command, &own, clock, rules)? {
            set = Some(finish(writing, at, composed)?.1);
        }
    }
    let (at, caller) = (set.as_ref().unwrap_or(at), &own);
    let composed = if stays_in_background(writing, at.row.summary.id, at.state.active, leases, &command)? {
        compose_in_background(writing, at, command, caller, clock, rules)?
    } else {
        compose_command(writing, at, command, caller, clock, rules)?
    };
    match composed {
        None => Ok(at.unchanged()),
        Some(composed) => Ok(finish(writing, at, composed)?.0),
    }
}

/// Names and values of settings.
type SettingValues = Vec<(String, String)>;

/// Splits off the settings that come with a step of a turn. Settings belong to the thread, so they become a step of the
/// thread in the same turn: undo and redo treat both together, and no other undo loses them.
fn without_settings(mut command: Command) -> (Command, Option<(TurnId, SettingValues)>) {
    let (turn, values) = match &mut command {
        Command::StartTurn { start, .. } => (start.turn, std::mem::take(&mut start.settings)),
        Command::AdvanceTurn { advance, .. } => (advance.turn, std::mem::take(&mut advance.settings)),
        _ => return (command, None),
    };
    (command, Some((turn, values)).filter(|(_, values)| !values.is_empty()))
}

/// Composes the operation of a command; `None` if nothing changes.
pub(crate) fn compose_command<'writing, 'transaction>(
    writing: &'writing WriteTransaction<'transaction>,
    at: &Head,
    command: Command,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
) -> Result<Option<ComposedOperation<'writing, 'transaction>>, ChangeError> {
    let Some(command) = with_marks(command, &at.row.summary) else { return Ok(None) };
    let mut additions = Additions::new(&**writing);
    let taken = |name: &str| Ok(writing.take_named(at.row.number, name)?.is_some());
    let git_commit = commit_of(writing, at, &command, caller)?;
    let git_commit = git_commit.as_deref();
    let mut context = CommandContext {
        additions: &mut additions,
        fresh: &mut ClockIds(clock),
        take_named: &taken,
        git_commit,
    };
    match apply(&at.state, command, &mut context)? {
        CommandOutcome::Unchanged => Ok(None),
        CommandOutcome::Changed { state, kind } => {
            compose_change(writing, at, additions, &state, kind, caller, clock, rules).map(Some)
        }
    }
}

/// A command that sets the visibility of a thread, with all marks filled in; `None` if nothing changes. The marks are
/// in the thread's row and not in the state that commands apply to.
pub(crate) fn with_marks(command: Command, row: &ThreadSummary) -> Option<Command> {
    let Command::Share { visibility, private, shared_with_support } = command else { return Some(command) };
    let sharing = row.sharing().with(visibility, private, shared_with_support);
    (sharing != row.sharing()).then_some(Command::Share {
        visibility: Some(sharing.visibility),
        private: Some(sharing.private),
        shared_with_support: Some(sharing.shared_with_support),
    })
}

/// Composes a take that stays in the background. Records the files that it would have, so that it has them when it gets
/// a folder.
fn compose_in_background<'writing, 'transaction>(
    writing: &'writing WriteTransaction<'transaction>,
    at: &Head,
    command: Command,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
) -> Result<Option<ComposedOperation<'writing, 'transaction>>, ChangeError> {
    let mut additions = Additions::new(&**writing);
    let log = (at.row.number, &at.last.operation);
    let files = files_of_new_take(writing, log, &at.state, &command, &mut additions)?;
    let taken = |name: &str| Ok(writing.take_named(at.row.number, name)?.is_some());
    let git_commit = commit_of(writing, at, &command, caller)?;
    let git_commit = git_commit.as_deref();
    let mut context = CommandContext {
        additions: &mut additions,
        fresh: &mut ClockIds(clock),
        take_named: &taken,
        git_commit,
    };
    let (state, kind) = match apply(&at.state, command, &mut context)? {
        CommandOutcome::Unchanged => return Ok(None),
        CommandOutcome::Changed { state, kind } => (state, kind),
    };
    let take = state.active;
    let state = ThreadState { active: at.state.active, ..state };
    let mut composed = compose_change(writing, at, additions, &state, kind, caller, clock, rules)?;
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

/// A thread and its last operation.
pub(crate) fn head_of(
    queries: &Queries<'_>,
    thread: ThreadId,
) -> Result<(ThreadRow, Operation), ChangeError> {
    let row = queries.thread(thread)?.ok_or(ChangeError::NoSuchThread(thread))?;
    let head = queries.last_operation(&row)?.operation;
    Ok((row, head))
}

/// Other active threads of a project, most recently changed first.
fn others_in_use(
    queries: &Queries<'_>,
    project: ProjectId,
    but: ThreadId,
) -> Result<Vec<ThreadRow>, StoreError> {
    let filter = ThreadFilter { project: Some(project), ..ThreadFilter::default() };
    let mut others = queries.threads(&filter)?;
    others.retain(|row| row.summary.id != but);
    others.sort_by_key(|row| Reverse(row.summary.updated));
    Ok(others)
}

/// Rejects deleting the last active thread of a project.
pub(crate) fn check_not_last(queries: &Queries<'_>, row: &ThreadRow) -> Result<(), ChangeError> {
    let last = others_in_use(queries, row.home, row.summary.id)?.is_empty();
    if last { Err(ChangeError::LastThread) } else { Ok(()) }
}

/// If the deleted thread was current, selects the most recently changed one of the rest.
fn select_another(writing: &WriteTransaction<'_>, deleted: ThreadId) -> Result<(), StoreError> {
    for project in writing.projects()? {
        if project.current == Some(deleted) {
            let others = others_in_use(writing, project.id, deleted)?;
            writing.set_current(project.id, others.first().map(|row| row.summary.id))?;
        }
    }
    Ok(())
}

/// Checks that no other active thread of the project has the title.
pub(crate) fn title_is_free(
    writing: &WriteTransaction<'_>,
    thread: &ThreadRow,
    title: &str,
) -> Result<(), ChangeError> {
    let title = retake_model::name::check(retake_model::name::NameKind::Title, title)?;
    let taken = writing.threads_with_title(&title)?.iter().any(|other| {
        other.number != thread.number && other.home == thread.home && other.summary.deleted.is_none()
    });
    if taken { Err(ChangeError::TitleTaken(title)) } else { Ok(()) }
}

/// A thread before a change.
pub(crate) struct Head(retake_store::ThreadHead);

impl Deref for Head {
    type Target = retake_store::ThreadHead;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Head {
    /// The newest state of a thread, if its version is the one that the caller expects.
    pub(crate) fn of(
        writing: &WriteTransaction<'_>,
        thread: ThreadId,
        caller: &Caller,
    ) -> Result<Self, ChangeError> {
        // Files are being moved to another version of this thread, which follows when they are in place.
        if let Some(pending) = writing.intent_for_thread(thread)? {
            return Err(ChangeError::Moving(pending.intent.folder));
        }
        let at = Self::any_version(writing, thread)?;
        let current = at.last.operation.version;
        match caller.expected {
            Some(expected) if expected != current => Err(ChangeError::Conflict { expected, current }),
            _ => Ok(at),
        }
    }

    /// The newest state of a thread, without checking the expected version or pending moves.
    pub(crate) fn any_version(writing: &WriteTransaction<'_>, thread: ThreadId) -> Result<Self, ChangeError> {
        Ok(Self(writing.thread_head(thread)?.ok_or(ChangeError::NoSuchThread(thread))?))
    }

    pub(crate) fn unchanged(&self) -> ChangeOutcome {
        ChangeOutcome {
            thread: self.row.summary.id,
            version: self.last.operation.version,
            operation: None,
            kind: None,
            undoable: false,
            take: None,
            new_bytes: 0,
            summary: self.row.summary.clone(),
        }
    }

    fn follow(
        &self,
        after: ContentId,
        kind: OperationKind,
        turn: TurnId,
        caller: &Caller,
        clock: &dyn Clock,
    ) -> Operation {
        Operation {
            thread: self.last.operation.thread,
            version: self.last.operation.version + 1,
            previous: Some(self.last.id),
            after,
            kind,
            turn,
            actor: caller.actor.clone(),
            // A clock that was set back must not make the log run backwards.
            time: clock.now().max(self.last.operation.time),
            place: self.last.operation.place,
            environment: None,
            files: None,
            last_file_operation: self.last.operation.last_file_operation,
            request: caller.request,
            chains: None,
        }
    }
}

/// An operation with its content, not published yet.
pub(crate) struct ComposedOperation<'writing, 'transaction> {
    pub(crate) operation: Operation,
    pub(crate) additions: Additions<'writing, retake_store::Queries<'transaction>>,
}

/// Publishes a change of the state.
#[expect(clippy::too_many_arguments, reason = "each is a different fact of the one operation that it writes")]
pub(crate) fn publish(
    writing: &WriteTransaction<'_>,
    at: &Head,
    additions: Additions<'_, retake_store::Queries<'_>>,
    state: &ThreadState,
    kind: OperationKind,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
) -> Result<ChangeOutcome, ChangeError> {
    let composed = compose_change(writing, at, additions, state, kind, caller, clock, rules)?;
    Ok(finish(writing, at, composed)?.0)
}

/// Composes an operation that changes the state.
#[expect(clippy::too_many_arguments, reason = "each is a different fact of the one operation that it makes")]
pub(crate) fn compose_change<'writing, 'transaction>(
    writing: &WriteTransaction<'_>,
    at: &Head,
    mut additions: Additions<'writing, retake_store::Queries<'transaction>>,
    state: &ThreadState,
    kind: OperationKind,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
) -> Result<ComposedOperation<'writing, 'transaction>, ChangeError> {
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
    let running = running_turn(&at.state, &additions, take)?.filter(|_| !kind.is_not_undoable());
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
    let mut operation = at.follow(after, kind, turn, caller, clock);
    (operation.place, operation.chains) = (place, Some(chains));
    operation.environment = caller.environment.as_ref().map(|around| additions.add(around));
    Ok(ComposedOperation { operation, additions })
}

/// Publishes a move along the log. Returns the thread after it, for the next move.
pub(crate) fn publish_move(
    writing: &WriteTransaction<'_>,
    at: &Head,
    cursor: &HistoryCursor,
    kind: OperationKind,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<(ChangeOutcome, Head), ChangeError> {
    finish(writing, at, compose_move(writing, at, cursor, kind, caller, clock)?)
}

/// Composes an operation that moves along the log.
pub(crate) fn compose_move<'writing, 'transaction>(
    writing: &'writing WriteTransaction<'transaction>,
    at: &Head,
    cursor: &HistoryCursor,
    kind: OperationKind,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<ComposedOperation<'writing, 'transaction>, ChangeError> {
    let (log, head) = (writing.log(at.row.number), at.last.operation.version);
    let mut additions = Additions::new(&**writing);
    let state = state_after(writing, &mut additions, (at.row.number, head), &at.state, cursor)?;
    check_worktree(writing, &additions, at, &state)?;
    if state.deleted.is_some() && at.state.deleted.is_none() {
        check_not_last(writing, &at.row)?;
    }
    let turn = caller.turn.unwrap_or_else(|| TurnId::generate(&mut ClockIds(clock)));
    let mut operation = at.follow(additions.add(&state), kind, turn, caller, clock);
    let (place, chains) = link_move(&log, head, cursor.view(), cursor.moves(&log)?)?;
    (operation.place, operation.chains) = (place, Some(chains));
    operation.environment = caller.environment.as_ref().map(|around| additions.add(around));
    Ok(ComposedOperation { operation, additions })
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

/// Publishes a composed operation. Returns the thread after it.
pub(crate) fn finish(
    writing: &WriteTransaction<'_>,
    at: &Head,
    composed: ComposedOperation<'_, '_>,
) -> Result<(ChangeOutcome, Head), ChangeError> {
    let ComposedOperation { operation, additions } = composed;
    let (thread, version, kind) = (operation.thread, operation.version, operation.kind.clone());
    let (take, is_change) =
        (operation.chains.as_ref().and_then(|chains| chains.take), !kind.is_not_undoable());
    let published = writing.publish_onto(at, Publication { operation, objects: additions.into_new() })?;
    if published.head.state.deleted.is_some() && at.state.deleted.is_none() {
        select_another(writing, thread)?;
    }
    // A change of a take is the next to be undone in it; a step of the thread may affect another folder.
    let undoable =
        is_change && (take.is_some() || next_undo(writing, &published.head, None)? == Some(version));
    let done = ChangeOutcome {
        thread,
        version,
        operation: Some(published.id),
        undoable,
        take,
        kind: Some(kind),
        new_bytes: published.new_bytes,
        summary: published.head.row.summary.clone(),
    };
    Ok((done, Head(published.head)))
}
