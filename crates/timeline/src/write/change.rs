//! Changes a thread: from the newest state to the next, published as one operation.

mod compose;
mod running;
mod turn;

use std::cmp::Reverse;
use std::ops::Deref;

use retake_model::content::ContentId;
use retake_model::id::{ProjectId, TakeId, ThreadId, TurnId};
use retake_model::intent::WorktreeTake;
use retake_model::operation::{Operation, OperationKind, Version};
use retake_model::summary::ThreadSummary;
use retake_store::runtime::TurnLeases;
use retake_store::{Publication, Queries, StoreError, ThreadFilter, ThreadRow, WriteTransaction};
use serde::Serialize;

use crate::clock::Clock;
use crate::write::moves::next_undo;
use crate::{Caller, ChangeError, Command, Rules, Timeline};

pub(crate) use self::compose::{ComposedOperation, Composer};
use self::running::check_turns;
pub(crate) use self::running::{check_kept, check_no_turn};

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
        match &done {
            // The operation may be on disk, and needs its record then.
            Ok(_) | Err(ChangeError::Store(StoreError::OutcomeUnknown)) => {}
            // A record without its operation has no effect, so that its removal may fail too.
            Err(_) => drop(self.revert_shared(recorded)),
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
                let composer = Composer { writing, at: &at, caller: &caller, clock: &*clock, rules };
                match composer.background_take(command)? {
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
        let composer = Composer { writing, at, caller: &own, clock, rules };
        if let Some(composed) = composer.command(command)? {
            set = Some(finish(writing, at, composed)?.1);
        }
    }
    let at = set.as_ref().unwrap_or(at);
    let composer = Composer { writing, at, caller: &own, clock, rules };
    let composed = if stays_in_background(writing, at.row.summary.id, at.state.active, leases, &command)? {
        composer.background_take(command)?
    } else {
        composer.command(command)?
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
