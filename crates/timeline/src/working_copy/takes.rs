//! Changes of takes with files: a switch moves the files of the other take in, a fork continues with the current ones.

use retake_model::command::{CommandContext, CommandOutcome, apply};
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::{Additions, Objects, load};
use retake_model::operation::{FileChange, Operation};
use retake_model::replay::{OnConflict, ReplayPlan, replay};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::tree::Snapshot;
use retake_store::Queries;
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use super::entry_files::{Reversal, TakeEnd, reversals_to_entry};
use super::merge::merge_steps;
use super::moves::LABELS;
use super::report::FileReport;
use super::resolve_request::{FileSteps, plan_files};
use super::{FileError, MoveOptions, PlanRequest, Scope, WorkingCopy, plan};
use crate::clock::ClockIds;
use crate::write::change::head_of;
use crate::{Caller, ChangeError, ChangeOutcome, Command, PromoteOutcome};

/// Outcome of a command that may move files.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeReport {
    /// The change of the thread; `null` for a preview.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub done: Option<ChangeOutcome>,
    /// The changes of files; `null` if only the conversation changes.
    pub files: Option<FileReport>,
}

impl WorkingCopy {
    /// Executes a command. If it makes another take active, moves the files of that take in.
    pub fn change(
        &self,
        thread: ThreadId,
        command: Command,
        caller: Caller,
        move_options: MoveOptions,
    ) -> Result<ChangeReport, FileError> {
        let executed = self
            .planned_request(thread, PlanRequest::Change(command), caller, move_options)?
            .perform(None)?;
        Ok(ChangeReport { done: executed.done, files: executed.files })
    }

    /// Promotes a take to a thread. Rejects the active take while its files are in the folder and another take's should
    /// be, unless only the conversation moves.
    pub fn promote(
        &self,
        thread: ThreadId,
        take: TakeId,
        title: Option<String>,
        caller: Caller,
        scope: Scope,
    ) -> Result<PromoteOutcome, FileError> {
        let options = MoveOptions { scope, ..MoveOptions::default() };
        let planned = self.planned_request(thread, PlanRequest::Promote { take, title }, caller, options)?;
        planned.check_turns()?;
        planned.perform(None)?.into_promoted()
    }

    /// Rejects promoting the active take while its files are in the folder and another take's should be.
    pub(super) fn check_promotion(
        &self,
        queries: &Queries<'_>,
        thread: ThreadId,
        take: TakeId,
        current: ContentId,
    ) -> Result<(), FileError> {
        let (row, head) = head_of(queries, thread)?;
        let state: ThreadState = load(queries, head.after)?;
        if state.active != take {
            return Ok(());
        }
        let next_active = self.active_after(queries, &state, &Command::DeleteTake { take })?;
        let steps = plan::steps_to_take(queries, row.number, &head, next_active, current)?;
        let replay_plan = ReplayPlan::of(steps.unwrap_or_default());
        let files: Snapshot = load(queries, current)?;
        if plan_files(
            &self.timeline,
            queries,
            &files,
            &FileSteps::Replay(replay_plan),
            OnConflict::default(),
        )?
        .moving()
            == 0
        {
            return Ok(());
        }
        let name = |take| -> Result<String, FileError> {
            Ok(state.take(queries, take)?.map(|take| take.name).unwrap_or_default())
        };
        Err(FileError::FilesWouldStay { take: name(take)?, next_active: name(next_active)? })
    }

    /// The changes of a command to files; the flag is set if the files of its entry are unknown.
    pub(super) fn steps_of(
        &self,
        queries: &Queries<'_>,
        thread: ThreadId,
        command: &Command,
        current: ContentId,
    ) -> Result<(Vec<Reversal>, bool), FileError> {
        let (row, head) = head_of(queries, thread)?;
        let state: ThreadState = load(queries, head.after)?;
        let (take, entry) = match command {
            Command::Merge { into, from, .. } => {
                return Ok((merge_steps(queries, (row.number, &head), &state, (*into, *from))?, false));
            }
            Command::Switch { take } | Command::Keep { take } => (*take, None),
            Command::DeleteTake { take } if *take == state.active => {
                (self.active_after(queries, &state, command)?, None)
            }
            _ => match new_take(queries, &state, command)? {
                Some(new) => new,
                None => return Ok((Vec::new(), false)),
            },
        };
        let (mut steps, mut files) = (Vec::new(), current);
        if take == plan::take_in_folder(queries, row.number, head.version, &state)? {
            let promoted = plan::step_to_promoted(queries, row.number, head.version, take)?;
            steps.extend(promoted.map(|step| Reversal { step, shared: false }));
        } else {
            if !matches!(command, Command::DeleteTake { .. }) {
                self.check_folder_of_take(queries, thread, take)?;
            }
            let found = plan::steps_to_take(queries, row.number, &head, take, current)?;
            let Some(found) = found else { return Ok((steps, false)) };
            // A take that becomes inactive keeps its files: none of its changes are undone.
            steps.extend(found.into_iter().map(|step| Reversal { step, shared: false }));
            files = plan::files_of_take(queries, row.number, &head, take)?.unwrap_or(current);
        }
        let Some(entry) = entry else { return Ok((steps, false)) };
        let end = TakeEnd { thread: row.number, version: head.version, take, files };
        let reversals = reversals_to_entry(queries, end, entry)?;
        let unknown = reversals.is_none();
        steps.extend(reversals.unwrap_or_default());
        Ok((steps, unknown))
    }

    /// The take that would be active after a command.
    fn active_after(
        &self,
        queries: &Queries<'_>,
        state: &ThreadState,
        command: &Command,
    ) -> Result<TakeId, FileError> {
        let mut additions = Additions::new(queries);
        let mut context = CommandContext {
            additions: &mut additions,
            fresh: &mut ClockIds(&*self.timeline.clock),
            take_named: &|_| Ok(false),
            git_commit: None,
        };
        match apply(state, command.clone(), &mut context).map_err(ChangeError::from)? {
            CommandOutcome::Changed { state, .. } => Ok(state.active),
            CommandOutcome::Unchanged => Ok(state.active),
        }
    }

    /// Rejects a take whose files are in another folder.
    fn check_folder_of_take(
        &self,
        queries: &Queries<'_>,
        thread: ThreadId,
        take: TakeId,
    ) -> Result<(), FileError> {
        let found = queries.folders()?.into_iter().find(|folder| {
            folder.worktree.is_some_and(|worktree| worktree.thread == thread && worktree.take == take)
                && folder.id != self.folder
        });
        found.map_or(Ok(()), |open| Err(FileError::TakeInWorktree(path_from_text(open.path()))))
    }
}

/// The last entry of a take.
pub(super) fn last_entry(
    queries: &Queries<'_>,
    state: &ThreadState,
    take: TakeId,
) -> Result<Option<EntryId>, FileError> {
    let Some(Take { entries, .. }) = state.take(queries, take)? else { return Ok(None) };
    let Some(last) = entries.len().checked_sub(1) else { return Ok(None) };
    Ok(entries.get(queries, last)?.map(|cell| cell.entry))
}

/// The source take of a command that creates a take, and the entry with whose files the new take starts; without an
/// entry, it starts with the last files of the source.
fn new_take(
    queries: &Queries<'_>,
    state: &ThreadState,
    command: &Command,
) -> Result<Option<(TakeId, Option<EntryId>)>, FileError> {
    Ok(match command {
        Command::Fork { from, at, .. } | Command::Retry { from, at, .. } => Some((*from, Some(*at))),
        Command::Branch { from, at, .. } => {
            let last = last_entry(queries, state, *from)?;
            Some((*from, at.filter(|at| last != Some(*at))))
        }
        _ => None,
    })
}

/// The files with which a new take in the background starts, if known: with the same steps as in a folder, from the
/// last files of its source take.
pub(crate) fn files_of_new_take<O: Objects + ?Sized>(
    queries: &Queries<'_>,
    (thread, head): (i64, &Operation),
    state: &ThreadState,
    command: &Command,
    additions: &mut Additions<'_, O>,
) -> Result<Option<ContentId>, ChangeError> {
    let Some((take, entry)) = new_take(queries, state, command)? else { return Ok(None) };
    let Some(files) = plan::files_of_take(queries, thread, head, take)? else { return Ok(None) };
    let Some(entry) = entry else { return Ok(Some(files)) };
    let end = TakeEnd { thread, version: head.version, take, files };
    let Some(reversals) = reversals_to_entry(queries, end, entry)? else { return Ok(Some(files)) };
    let replay_plan = ReplayPlan::of(reversals.iter().map(|reversal| reversal.step).collect());
    let current: Snapshot = load(additions, files)?;
    let replayed = replay(additions, &current, &replay_plan, OnConflict::default(), LABELS)?;
    Ok(Some(additions.add(&replayed.snapshot)))
}

/// The files of a promoted take: its last ones.
pub(crate) fn files_of_promoted(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
) -> Result<Option<FileChange>, ChangeError> {
    let files = plan::files_of_take(queries, thread, head, take)?;
    Ok(files.map(|files| FileChange {
        before: files,
        after: files,
        take,
        worktree: false,
        left: None,
        shared: None,
    }))
}
