//! Applies one request to the real timeline and to the model.

use std::collections::{HashMap, HashSet};

use retake_model::command::CommandError;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::OperationKind;
use retake_timeline::{Caller, ChangeError, ChangeOutcome, Command, Goal, HistoryMove, Timeline, Unit};

use super::compare::same;
use super::log::HistoryWalk;
use super::observe::entry_ids;
use super::reference::{ExpectedRefusal, IdSource};
use super::world::{RequestContext, World};
use crate::violation::BoxError;

/// The common outcome of a request.
#[derive(Debug, Default)]
pub struct StepOutcome {
    /// The refusal, if any.
    pub refused: Option<ExpectedRefusal>,
    /// Other threads that changed.
    pub also: Vec<ThreadId>,
}

/// All ids that were generated so far.
#[derive(Debug, Default)]
pub struct KnownIds(HashSet<[u8; 16]>);

/// Converts the caller for the timeline.
pub fn caller(asking: &RequestContext) -> Caller {
    Caller {
        actor: asking.actor.clone(),
        environment: None,
        turn: asking.turn.map(turn_id),
        expected: asking.expected.map(|version| version as u64),
        request: None,
        take: None,
    }
}

/// A command.
pub fn change(
    timeline: &Timeline,
    world: &mut World,
    known: &mut KnownIds,
    index: usize,
    command: &Command,
    asking: &RequestContext,
) -> Result<StepOutcome, BoxError> {
    let thread = world.threads[index].id;
    let real = timeline.change(thread, command.clone(), caller(asking));
    let mut lesson = IdObserver::new(timeline, thread, real.as_ref().ok(), known);
    let reference = world.change(index, command, asking, &mut lesson);
    lesson.finish()?;
    let (done, changed) = match agree(real, reference)? {
        Agreement::Done(done, changed) => (done, changed),
        Agreement::Refused(refused) => return Ok(StepOutcome { refused: Some(refused), also: Vec::new() }),
    };
    same("changed", &done.changed(), &changed)?;
    same("version", &done.version, &(world.threads[index].version() as u64))?;
    same(
        "undoable",
        &done.undoable,
        &(changed && !matches!(command, Command::Save { .. } | Command::Share { .. })),
    )?;
    Ok(StepOutcome::default())
}

/// A promotion.
pub fn promote(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    take: TakeId,
    title: Option<&str>,
    asking: &RequestContext,
) -> Result<StepOutcome, BoxError> {
    let thread = world.threads[index].id;
    let real = timeline.promote(thread, take, title.map(str::to_owned), caller(asking));
    let into = real.as_ref().map_or(ThreadId::from_bytes([0; 16]), |promoted| promoted.promoted.thread);
    let reference = world.promote(index, take, title, asking, into);
    match agree(real, reference)? {
        Agreement::Done(promoted, ()) => {
            same("version", &promoted.source.version, &(world.threads[index].version() as u64))?;
            Ok(StepOutcome { refused: None, also: vec![into] })
        }
        Agreement::Refused(refused) => Ok(StepOutcome { refused: Some(refused), also: Vec::new() }),
    }
}

/// An undo.
pub fn undo(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    (unit, steps): (Unit, u64),
    asking: &RequestContext,
) -> Result<StepOutcome, BoxError> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Undo(unit, steps), caller(asking));
    let reference = world.undo(index, unit, steps, asking);
    moved(world, index, asking, agree(real, reference)?)
}

/// A redo.
pub fn redo(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    (unit, steps): (Unit, u64),
    asking: &RequestContext,
) -> Result<StepOutcome, BoxError> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Redo(unit, steps), caller(asking));
    let reference = world.redo(index, unit, steps, asking);
    moved(world, index, asking, agree(real, reference)?)
}

/// A jump.
pub fn jump(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    version: usize,
    asking: &RequestContext,
) -> Result<StepOutcome, BoxError> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Jump(version as u64), caller(asking));
    let reference = world.jump(index, version, asking);
    let answer = match agree(real, reference)? {
        Agreement::Done(real, changed) => {
            same("changed by a jump", &real.done.changed(), &changed.is_some())?;
            Agreement::Done(real, changed.unwrap_or_default())
        }
        Agreement::Refused(refused) => Agreement::Refused(refused),
    };
    moved(world, index, asking, answer)
}

fn moved(
    world: &World,
    index: usize,
    asking: &RequestContext,
    answer: Agreement<HistoryMove, Vec<ThreadId>>,
) -> Result<StepOutcome, BoxError> {
    let (real, also) = match answer {
        Agreement::Done(real, also) => (real, also),
        Agreement::Refused(refused) => return Ok(StepOutcome { refused: Some(refused), also: Vec::new() }),
    };
    let thread = &world.threads[index];
    // Their order does not matter.
    let sorted = |ids: &[ThreadId]| ids.iter().copied().collect::<std::collections::BTreeSet<_>>();
    same("threads that came along", &sorted(&real.also), &sorted(&also))?;
    let walk = || HistoryWalk::new(thread, asking.worktree, None);
    same("position", &real.position, &(walk().position() as u64))?;
    same("version", &real.done.version, &(thread.version() as u64))?;
    same("can_undo", &real.can_undo, &walk().step(Unit::Turn, true))?;
    same("can_redo", &real.can_redo, &walk().step(Unit::Turn, false))?;
    Ok(StepOutcome { refused: None, also })
}

/// What the program and the reference model agree on.
pub enum Agreement<R, N> {
    /// Both did it, with these results.
    Done(R, N),
    /// Both refused it.
    Refused(ExpectedRefusal),
}

/// Returns both results or the common refusal; fails if the two disagree.
pub fn agree<R, N>(
    real: Result<R, ChangeError>,
    reference: Result<N, ExpectedRefusal>,
) -> Result<Agreement<R, N>, BoxError> {
    match (real, reference) {
        (Ok(real), Ok(reference)) => Ok(Agreement::Done(real, reference)),
        (Err(error), Err(refused)) => {
            same("refusal", &meaning(&error)?, &refused)?;
            Ok(Agreement::Refused(refused))
        }
        (Ok(_), Err(refused)) => Err(format!("succeeded, but should be refused: {refused:?}").into()),
        (Err(error), Ok(_)) => Err(format!("was refused, but should succeed: {error}").into()),
    }
}

/// Maps an error to the refusal of the model; other errors are failures.
fn meaning(error: &ChangeError) -> Result<ExpectedRefusal, BoxError> {
    Ok(match error {
        ChangeError::Conflict { .. } => ExpectedRefusal::Conflict,
        ChangeError::ThreadDeleted => ExpectedRefusal::ThreadDeleted,
        ChangeError::LastThread => ExpectedRefusal::LastThread,
        ChangeError::TitleTaken(_) => ExpectedRefusal::TitleTaken,
        ChangeError::Title(_) => ExpectedRefusal::Name,
        ChangeError::NothingToUndo => ExpectedRefusal::NothingToUndo,
        ChangeError::NothingToRedo => ExpectedRefusal::NothingToRedo,
        ChangeError::TooDeep(_) => ExpectedRefusal::TooDeep,
        ChangeError::NoSuchVersion { .. } | ChangeError::NoSuchTakeThen { .. } => {
            ExpectedRefusal::NoSuchVersion
        }
        ChangeError::Refused(refusal) => match refusal {
            CommandError::NoSuchTake => ExpectedRefusal::NoSuchTake,
            CommandError::NoSuchEntry => ExpectedRefusal::NoSuchEntry,
            CommandError::EntryExists(_) => ExpectedRefusal::EntryExists,
            CommandError::EmptyDraft { .. } => ExpectedRefusal::EmptyDraft,
            CommandError::NameTaken(_) => ExpectedRefusal::NameTaken,
            CommandError::LastTake => ExpectedRefusal::LastTake,
            CommandError::OnlyTake => ExpectedRefusal::OnlyTake,
            CommandError::SameTake => ExpectedRefusal::SameTake,
            CommandError::NotAttached(_) => ExpectedRefusal::NotAttached,
            CommandError::NotAUserMessage { .. } => ExpectedRefusal::NotAUserMessage,
            CommandError::Name(_) => ExpectedRefusal::Name,
            CommandError::Setting(_) => ExpectedRefusal::Setting,
            CommandError::TooMuch { .. } => ExpectedRefusal::TooMuch,
            // Every image of the model's entries was attached to them.
            CommandError::NoSuchPicture(_) => return Err(refusal.to_string().into()),
            CommandError::TurnUnfinished => ExpectedRefusal::TurnUnfinished,
            // Requests of this campaign always have prompts, continue running turns and compress nothing.
            CommandError::EmptyPrompt
            | CommandError::EmptySummary
            | CommandError::TurnGone
            | CommandError::SummaryOutdated
            | CommandError::NothingToCompress
            | CommandError::AssistantPrompt { .. } => {
                return Err(format!("refused without a reason: {refusal}").into());
            }
            CommandError::Unavailable(unavailable) => return Err(unavailable.to_string().into()),
        },
        other => return Err(other.to_string().into()),
    })
}

/// The id of a numbered turn.
pub fn turn_id(number: u64) -> TurnId {
    let mut bytes = [0x55; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    TurnId::from_bytes(bytes)
}

/// Observes generated ids, each of which must be new.
struct IdObserver<'call> {
    timeline: &'call Timeline,
    thread: ThreadId,
    done: Option<&'call ChangeOutcome>,
    known: &'call mut KnownIds,
    entries: HashMap<TakeId, Vec<EntryId>>,
    trouble: Option<BoxError>,
}

impl<'call> IdObserver<'call> {
    fn new(
        timeline: &'call Timeline,
        thread: ThreadId,
        done: Option<&'call ChangeOutcome>,
        known: &'call mut KnownIds,
    ) -> Self {
        Self { timeline, thread, done, known, entries: HashMap::new(), trouble: None }
    }

    fn finish(self) -> Result<(), BoxError> {
        self.trouble.map_or(Ok(()), Err)
    }

    fn meet(&mut self, id: [u8; 16]) {
        if !self.known.0.insert(id) {
            self.trouble = Some("an identity was made up twice".into());
        }
    }

    fn read(&self, take: TakeId) -> Result<Vec<EntryId>, BoxError> {
        let reader = self.timeline.read()?;
        let found = reader.state(self.thread)?.take(&reader.queries(), take)?;
        Ok(entry_ids(&reader.queries(), &found.ok_or("the take is missing")?)?)
    }
}

impl IdSource for IdObserver<'_> {
    fn entry(&mut self, take: TakeId, place: usize) -> EntryId {
        let missing = EntryId::from_bytes([0; 16]);
        if self.done.is_none() {
            return missing;
        }
        if !self.entries.contains_key(&take) {
            let read = self.read(take).unwrap_or_else(|trouble| {
                self.trouble = Some(trouble);
                Vec::new()
            });
            self.entries.insert(take, read);
        }
        let entry = self.entries[&take].get(place).copied().unwrap_or(missing);
        self.meet(*entry.bytes());
        entry
    }

    fn take(&mut self) -> (TakeId, String) {
        match self.done.and_then(|done| done.kind.as_ref()) {
            Some(
                OperationKind::TakeBranched { take, name, .. } | OperationKind::TakeForked { take, name, .. },
            ) => {
                let made = (*take, name.clone());
                self.meet(*made.0.bytes());
                made
            }
            _ => (TakeId::from_bytes([0; 16]), String::new()),
        }
    }
}
