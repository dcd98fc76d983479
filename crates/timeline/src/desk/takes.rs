//! Takes with files: a switch brings the other take's files, a fork goes on with the ones that are there.

use retake_model::command::{Applied, Context, apply};
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::{Additions, load};
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::replay::{OnConflict, Step, Way};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::tree::Snapshot;
use retake_store::Queries;
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use super::report::FileReport;
use super::work::{FileSteps, plan_files};
use super::{Desk, FileError, Halves, Handling, PlanRequest, plan};
use crate::change::head_of;
use crate::clock::Ticks;
use crate::{Caller, ChangeError, Command, Done, Promoted};

/// What came of a change that may bring files along.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    /// What became of the thread; of a preview, nothing.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// What became of the files; `None` if only the conversation was to change.
    pub files: Option<FileReport>,
}

impl Desk {
    /// Does what a command asks. Where that makes another take the active one, its files come along.
    pub fn change(
        &self,
        thread: ThreadId,
        command: Command,
        caller: Caller,
        handling: Handling,
    ) -> Result<Changed, FileError> {
        let executed = self.order(thread, PlanRequest::Change(command), caller, handling)?.perform(None)?;
        Ok(Changed { done: executed.done, files: executed.files })
    }

    /// Makes a take a thread of its own. The active one is refused while its files are in the folder and another
    /// take's should be, unless only the conversation is to move.
    pub fn promote(
        &self,
        thread: ThreadId,
        take: TakeId,
        title: Option<String>,
        caller: Caller,
        halves: Halves,
    ) -> Result<Promoted, FileError> {
        let options = Handling { halves, ..Handling::default() };
        let order = self.order(thread, PlanRequest::Promote { take, title }, caller, options)?;
        order.check_turns()?;
        order.perform(None)?.into_promoted()
    }

    /// Refuses to promote the active take while its files are in the folder and another take's should be.
    pub(super) fn check_promotion(
        &self,
        queries: &Queries<'_>,
        thread: ThreadId,
        take: TakeId,
        present: ContentId,
    ) -> Result<(), FileError> {
        let (row, head) = head_of(queries, thread)?;
        let state: ThreadState = load(queries, head.after)?;
        if state.active != take {
            return Ok(());
        }
        let heir = self.active_after(queries, &state, &Command::DeleteTake { take })?;
        let steps = plan::steps_to_take(queries, row.number, &head, heir, present)?;
        let way = Way { back: Vec::new(), steps: steps.unwrap_or_default() };
        let files: Snapshot = load(queries, present)?;
        if plan_files(queries, &files, &FileSteps::Replay(way), OnConflict::default())?.moving() == 0 {
            return Ok(());
        }
        let name = |take| -> Result<String, FileError> {
            Ok(state.take(queries, take)?.map(|take| take.name).unwrap_or_default())
        };
        Err(FileError::FilesWouldStay { take: name(take)?, heir: name(heir)? })
    }

    /// What a command does to files.
    pub(super) fn steps_of(
        &self,
        queries: &Queries<'_>,
        thread: ThreadId,
        command: &Command,
        present: ContentId,
    ) -> Result<Vec<Step>, FileError> {
        let (row, head) = head_of(queries, thread)?;
        let state: ThreadState = load(queries, head.after)?;
        let moment = |entry: EntryId| added_at(queries, row.number, head.version, entry);
        // What came along when the take became a thread of its own has its moment in the thread that it left. Nothing in
        // this thread leads there, so there is nothing to go by but the files of that moment.
        let promoted = |entry: EntryId| -> Result<Vec<Step>, FileError> {
            let files = files_at_entry(queries, row.number, head.version, state.active, entry)?;
            Ok(files.into_iter().map(|files| Step::new(present, files)).collect())
        };
        let since = |entry: EntryId| -> Result<Vec<Step>, FileError> {
            let Some(version) = moment(entry)? else { return promoted(entry) };
            Ok(plan::undo_take_since(queries, row.number, head.version, state.active, version)?)
        };
        match command {
            // At the last entry, a branch goes on from now: with all that is there.
            Command::Branch { from, at: Some(entry), .. }
                if *from == state.active && last_entry(queries, &state, *from)? == Some(*entry) =>
            {
                Ok(Vec::new())
            }
            Command::Branch { from, at: Some(entry), .. } if *from == state.active => since(*entry),
            Command::Fork { from, at, .. } | Command::Retry { from, at, .. } if *from == state.active => {
                since(*at)
            }
            Command::Switch { take }
            | Command::Branch { from: take, .. }
            | Command::Fork { from: take, .. }
            | Command::Retry { from: take, .. }
                if *take != state.active =>
            {
                self.check_here(queries, thread, *take)?;
                let Some(mut steps) = plan::steps_to_take(queries, row.number, &head, *take, present)? else {
                    return Ok(Vec::new());
                };
                let entry = match command {
                    Command::Fork { at, .. } | Command::Retry { at, .. } => Some(*at),
                    Command::Branch { at, .. } => {
                        let last = last_entry(queries, &state, *take)?;
                        at.filter(|at| last != Some(*at))
                    }
                    _ => None,
                };
                // From the take's last files back to those of the entry.
                if let Some(version) = entry.map(moment).transpose()?.flatten() {
                    steps.extend(plan::undo_take_since(queries, row.number, head.version, *take, version)?);
                }
                Ok(steps)
            }
            Command::DeleteTake { take } if *take == state.active => {
                let heir = self.active_after(queries, &state, command)?;
                let steps = plan::steps_to_take(queries, row.number, &head, heir, present)?;
                Ok(steps.unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The take that would be active after a command.
    fn active_after(
        &self,
        queries: &Queries<'_>,
        state: &ThreadState,
        command: &Command,
    ) -> Result<TakeId, FileError> {
        let mut additions = Additions::new(queries);
        let mut context = Context {
            additions: &mut additions,
            fresh: &mut Ticks(&*self.timeline.clock),
            take_named: &|_| Ok(false),
            git_commit: None,
        };
        match apply(state, command.clone(), &mut context).map_err(ChangeError::from)? {
            Applied::Changed { state, .. } => Ok(state.active),
            Applied::Unchanged => Ok(state.active),
        }
    }

    /// Refuses a take whose files are in another folder.
    fn check_here(&self, queries: &Queries<'_>, thread: ThreadId, take: TakeId) -> Result<(), FileError> {
        let found = queries.folders()?.into_iter().find(|folder| {
            folder.apart.is_some_and(|apart| apart.thread == thread && apart.take == take)
                && folder.id != self.folder
        });
        found.map_or(Ok(()), |open| Err(FileError::TakeElsewhere(path_from_text(open.path()))))
    }
}

/// The last entry of a take.
fn last_entry(
    queries: &Queries<'_>,
    state: &ThreadState,
    take: TakeId,
) -> Result<Option<EntryId>, FileError> {
    let Some(Take { entries, .. }) = state.take(queries, take)? else { return Ok(None) };
    let Some(last) = entries.len().checked_sub(1) else { return Ok(None) };
    Ok(entries.get(queries, last)?.map(|cell| cell.entry))
}

/// The files that a new take goes on with, as far as they are known: those of the entry that it begins at, or the last
/// ones of the take that it comes from.
pub(crate) fn files_of_new_take(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    state: &ThreadState,
    command: &Command,
) -> Result<Option<ContentId>, ChangeError> {
    let (from, entry) = match command {
        Command::Fork { from, at, .. } => (*from, Some(*at)),
        Command::Branch { from, at, .. } => {
            (*from, at.filter(|at| last_entry(queries, state, *from).ok().flatten() != Some(*at)))
        }
        _ => return Ok(None),
    };
    let at_entry = match entry {
        Some(entry) => files_at_entry(queries, thread, head.version, from, entry)?,
        None => None,
    };
    match at_entry {
        Some(files) => Ok(Some(files)),
        None => Ok(plan::files_of_take(queries, thread, head, from)?),
    }
}

/// The files as they were when an entry came into a take of a thread, or of the one that it was promoted from.
fn files_at_entry(
    queries: &Queries<'_>,
    thread: i64,
    last: Version,
    take: TakeId,
    entry: EntryId,
) -> Result<Option<ContentId>, FileError> {
    let Some(moment) = added_at(queries, thread, last, entry)? else {
        return match promoted_from(queries, thread)? {
            Some((source, by)) => files_at_entry(queries, source, by, take, entry),
            None => Ok(None),
        };
    };
    for filed in plan::Filed::up_to(queries, thread, moment)? {
        let (_, files) = filed?;
        if !files.apart || files.take == take {
            return Ok(Some(files.after));
        }
    }
    Ok(None)
}

/// The thread that a thread was promoted from, and the last operation there before it was.
fn promoted_from(queries: &Queries<'_>, thread: i64) -> Result<Option<(i64, Version)>, FileError> {
    let Some(first) = queries.operation(thread, 1)? else { return Ok(None) };
    let OperationKind::ThreadPromoted { from, by, .. } = first.operation.kind else { return Ok(None) };
    Ok(queries.thread(from)?.map(|row| (row.number, by.saturating_sub(1))))
}

/// The files that a take takes along when it becomes a thread of its own: its last ones.
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
        apart: false,
        left: None,
        shared: None,
    }))
}

/// The change that brought an entry into the thread; `None` if it came along with others, or from elsewhere.
fn added_at(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    entry: EntryId,
) -> Result<Option<Version>, FileError> {
    const PAGE: usize = 500;
    let mut from = head;
    while from > 0 {
        let page = queries.operations_back(thread, from, PAGE)?;
        for stored in &page {
            if brought(queries, &stored.operation, entry)? {
                return Ok(Some(stored.operation.version));
            }
        }
        from = page.last().map_or(0, |last| last.operation.version - 1);
    }
    Ok(None)
}

/// Whether an operation brought an entry, alone or with a few others.
fn brought(queries: &Queries<'_>, operation: &Operation, entry: EntryId) -> Result<bool, FileError> {
    /// More come from an import or a script, where no single one stands for a moment.
    const FEW: u64 = 16;
    let Some(added) = operation.kind.added() else { return Ok(false) };
    if added.entry == entry {
        return Ok(true);
    }
    let (1.., OperationKind::TurnAdvanced { take, .. }) = (FEW.saturating_sub(added.count), &operation.kind)
    else {
        return Ok(false);
    };
    // A prompt comes behind what goes along with it.
    let state: ThreadState = load(queries, operation.after)?;
    let Some(take) = state.take(queries, *take)? else { return Ok(false) };
    let cells = take.entries.page(queries, added.position..added.position + added.count)?;
    Ok(cells.iter().any(|cell| cell.entry == entry))
}
