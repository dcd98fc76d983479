//! Takes with files: a switch brings the other take's files, a fork goes on with the ones that are there.

use retake_model::command::{Applied, Context, apply};
use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::{Additions, load};
use retake_model::operation::{Operation, OperationKind, Version};
use retake_model::replay::{OnConflict, Step, Way};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::Queries;
use serde::Serialize;

use super::carry_out::CarriedOut;
use super::moves::make_plan;
use super::report::{FileReport, of_plan};
use super::{Desk, FileError, Halves, Handling, Present, Session, plan};
use crate::change::{check_no_turn, compose_command};
use crate::clock::Ticks;
use crate::{Caller, ChangeError, Command, Done, Looking, Promoted};

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
        if handling.halves == Halves::Conversation || !may_switch(&command) || self.apart.is_some() {
            let done = self.timeline.change(thread, command, caller)?;
            return Ok(Changed { done: Some(done), files: None });
        }
        loop {
            match self.try_change(thread, &command, &caller, handling) {
                Err(FileError::Change(ChangeError::Conflict { .. })) if caller.expected.is_none() => {}
                other => return other,
            }
        }
    }

    fn try_change(
        &self,
        thread: ThreadId,
        command: &Command,
        caller: &Caller,
        handling: Handling,
    ) -> Result<Changed, FileError> {
        let session = self.begin()?;
        if !handling.preview {
            self.check_no_turn(thread)?;
        }
        let going = match command {
            Command::DeleteTake { take } => Some(*take),
            _ => None,
        };
        let present = session.present(thread, caller)?;
        let steps = session.steps_of(thread, command, present.id)?;
        let plan = {
            let looking = self.timeline.look()?;
            make_plan(&looking.queries(), &present, &Way { first: None, steps }, handling.on_conflict)?
        };
        if handling.preview {
            let paths = of_plan(&plan.replayed.paths, None);
            let files = FileReport::new(present.id, plan.wanted, paths, session.recovered);
            return Ok(Changed { done: None, files: Some(FileReport { preview: true, ..files }) });
        }
        let (clock, rules) = (self.timeline.clock.clone(), self.timeline.rules);
        let (command, composing, leases) = (command.clone(), caller.clone(), self.timeline.store.leases());
        let carried = session.carry_out(thread, &present, plan, caller, move |writing, at| {
            if at.state.deleted.is_some() {
                return Err(ChangeError::ThreadDeleted.into());
            }
            if going.is_some() {
                check_no_turn(writing, at, &leases, going)?;
            }
            compose_command(writing, at, command, &composing, &*clock, rules)?
                .ok_or_else(|| FileError::Unchanged(Box::new(at.unchanged())))
        });
        match carried {
            Ok(CarriedOut { done, report, .. }) => Ok(Changed { done: Some(done), files: Some(report) }),
            Err(FileError::Unchanged(done)) => Ok(Changed { done: Some(*done), files: None }),
            Err(error) => Err(error),
        }
    }
}

impl Desk {
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
        let mut caller = caller;
        // Also where files are looked at first, which what runs in the folder would stand against in other words.
        if self.timeline.store.turn_runs(take)? {
            let looking = self.timeline.look()?;
            let found = looking.state(thread)?.take(&looking.queries(), take)?;
            return Err(ChangeError::TurnRuns(found.map(|take| take.name).unwrap_or_default()).into());
        }
        if halves != Halves::Conversation && self.timeline.look()?.state(thread)?.active == take {
            let session = self.begin()?;
            let present = session.present(thread, &caller)?;
            caller.expected = caller.expected.map(|_| present.version);
            session.check_promotion(thread, take, &present)?;
        }
        Ok(self.timeline.promote(thread, take, title, caller)?)
    }
}

impl Session<'_> {
    fn check_promotion(&self, thread: ThreadId, take: TakeId, present: &Present) -> Result<(), FileError> {
        let looking = self.desk.timeline.look()?;
        let queries = looking.queries();
        let (row, head) = (looking.thread(thread)?, looking.head(thread)?.operation);
        let state = looking.state(thread)?;
        let heir = self.active_after(&queries, &state, &Command::DeleteTake { take })?;
        let steps = plan::steps_to_take(&queries, row.number, &head, heir, present.id)?;
        let way = Way { first: None, steps: steps.map(|way| way.steps).unwrap_or_default() };
        let plan = make_plan(&queries, present, &way, OnConflict::default())?;
        if plan.replayed.paths.iter().all(|path| path.present == path.wanted) {
            return Ok(());
        }
        let name = |take| -> Result<String, FileError> {
            Ok(state.take(&queries, take)?.map(|take| take.name).unwrap_or_default())
        };
        Err(FileError::FilesWouldStay { take: name(take)?, heir: name(heir)? })
    }
}

/// Whether a command can make another take the active one.
fn may_switch(command: &Command) -> bool {
    matches!(
        command,
        Command::Switch { .. }
            | Command::Branch { .. }
            | Command::Fork { .. }
            | Command::Retry { .. }
            | Command::DeleteTake { .. }
    )
}

impl Session<'_> {
    /// What the command does to files.
    fn steps_of(
        &self,
        thread: ThreadId,
        command: &Command,
        present: ContentId,
    ) -> Result<Vec<Step>, FileError> {
        let looking = self.desk.timeline.look()?;
        let queries = looking.queries();
        let row = looking.thread(thread)?;
        let head = looking.head(thread)?.operation;
        let state: ThreadState = looking.state(thread)?;
        let here = self.desk.here();
        let moment = |entry: EntryId| added_at(&queries, row.number, head.version, entry);
        let since = |version: Option<Version>| -> Result<Vec<Step>, FileError> {
            let Some(version) = version else { return Ok(Vec::new()) };
            // The moment may lie on a branch that was left; only what led to the present can be taken back.
            let ancestor = history::common(&queries.log(row.number), head.place.position, version)?;
            let changes = plan::on_the_way(&queries, row.number, head.place.position, ancestor, here)?;
            Ok(changes.into_iter().map(|(_, files)| Step { from: files.after, to: files.before }).collect())
        };
        match command {
            // At the last entry, a branch goes on from now: with all that is there.
            Command::Branch { from, at: Some(entry), .. }
                if *from == state.active && last_entry(&queries, &state, *from)? == Some(*entry) =>
            {
                Ok(Vec::new())
            }
            Command::Branch { from, at: Some(entry), .. } if *from == state.active => since(moment(*entry)?),
            Command::Fork { from, at, .. } | Command::Retry { from, at, .. } if *from == state.active => {
                since(moment(*at)?)
            }
            Command::Switch { take }
            | Command::Branch { from: take, .. }
            | Command::Fork { from: take, .. }
            | Command::Retry { from: take, .. }
                if *take != state.active =>
            {
                self.desk.check_here(&looking, thread, *take)?;
                let Some(way) = plan::steps_to_take(&queries, row.number, &head, *take, present)? else {
                    return Ok(Vec::new());
                };
                let entry = match command {
                    Command::Fork { at, .. } | Command::Retry { at, .. } => Some(*at),
                    Command::Branch { at, .. } => {
                        let last = last_entry(&queries, &state, *take)?;
                        at.filter(|at| last != Some(*at))
                    }
                    _ => None,
                };
                match entry.map(moment).transpose()?.flatten() {
                    Some(moment) => Ok(way.back_to(&queries, row.number, &head, moment, here)?),
                    None => Ok(way.steps),
                }
            }
            Command::DeleteTake { take } if *take == state.active => {
                let heir = self.active_after(&queries, &state, command)?;
                let way = plan::steps_to_take(&queries, row.number, &head, heir, present)?;
                Ok(way.map(|way| way.steps).unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl Session<'_> {
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
            fresh: &mut Ticks(&*self.desk.timeline.clock),
            take_named: &|_| Ok(false),
        };
        match apply(state, command.clone(), &mut context).map_err(ChangeError::from)? {
            Applied::Changed { state, .. } => Ok(state.active),
            Applied::Unchanged => Ok(state.active),
        }
    }
}

impl Desk {
    /// Refuses a take whose files are in another folder.
    fn check_here(&self, looking: &Looking<'_>, thread: ThreadId, take: TakeId) -> Result<(), FileError> {
        let found = looking
            .apart_folders()?
            .into_iter()
            .find(|open| open.thread == thread && open.take == take && open.id != self.folder);
        found.map_or(Ok(()), |open| Err(FileError::TakeElsewhere(open.path)))
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
