//! Applies one request to the real timeline and to the model.

use std::collections::{HashMap, HashSet};

use retake_model::command::Refusal;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::OperationKind;
use retake_timeline::{Caller, ChangeError, Command, Done, Goal, Moved, Timeline, Unit};

use super::compare::same;
use super::log::Walk;
use super::naive::{Learn, Refused};
use super::observe::entry_ids;
use super::world::{Asking, World};
use crate::violation::Trouble;

/// The common outcome of a request.
#[derive(Debug, Default)]
pub struct Answered {
    /// The refusal, if any.
    pub refused: Option<Refused>,
    /// Other threads that changed.
    pub also: Vec<ThreadId>,
}

/// All ids that were generated so far.
#[derive(Debug, Default)]
pub struct Known(HashSet<[u8; 16]>);

/// Converts the caller for the timeline.
pub fn caller(asking: &Asking) -> Caller {
    Caller {
        actor: asking.actor.clone(),
        surroundings: None,
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
    known: &mut Known,
    index: usize,
    command: &Command,
    asking: &Asking,
) -> Result<Answered, Trouble> {
    let thread = world.threads[index].id;
    let real = timeline.change(thread, command.clone(), caller(asking));
    let mut lesson = Lesson::new(timeline, thread, real.as_ref().ok(), known);
    let naive = world.change(index, command, asking, &mut lesson);
    lesson.finish()?;
    let (done, changed) = match agree(real, naive)? {
        Ok(both) => both,
        Err(refused) => return Ok(Answered { refused: Some(refused), also: Vec::new() }),
    };
    same("changed", &done.changed(), &changed)?;
    same("version", &done.version, &(world.threads[index].version() as u64))?;
    same(
        "undoable",
        &done.undoable,
        &(changed && !matches!(command, Command::Save { .. } | Command::Share { .. })),
    )?;
    Ok(Answered::default())
}

/// A promotion.
pub fn promote(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    take: TakeId,
    title: Option<&str>,
    asking: &Asking,
) -> Result<Answered, Trouble> {
    let thread = world.threads[index].id;
    let real = timeline.promote(thread, take, title.map(str::to_owned), caller(asking));
    let into = real.as_ref().map_or(ThreadId::from_bytes([0; 16]), |promoted| promoted.promoted.thread);
    let naive = world.promote(index, take, title, asking, into);
    match agree(real, naive)? {
        Ok((promoted, ())) => {
            same("version", &promoted.source.version, &(world.threads[index].version() as u64))?;
            Ok(Answered { refused: None, also: vec![into] })
        }
        Err(refused) => Ok(Answered { refused: Some(refused), also: Vec::new() }),
    }
}

/// An undo.
pub fn undo(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    (unit, steps): (Unit, u64),
    asking: &Asking,
) -> Result<Answered, Trouble> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Undo(unit, steps), caller(asking));
    let naive = world.undo(index, unit, steps, asking);
    moved(world, index, asking, agree(real, naive)?)
}

/// A redo.
pub fn redo(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    (unit, steps): (Unit, u64),
    asking: &Asking,
) -> Result<Answered, Trouble> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Redo(unit, steps), caller(asking));
    let naive = world.redo(index, unit, steps, asking);
    moved(world, index, asking, agree(real, naive)?)
}

/// A jump.
pub fn jump(
    timeline: &Timeline,
    world: &mut World,
    index: usize,
    version: usize,
    asking: &Asking,
) -> Result<Answered, Trouble> {
    let thread = world.threads[index].id;
    let real = timeline.go_in(thread, asking.worktree, Goal::Jump(version as u64), caller(asking));
    let naive = world.jump(index, version, asking);
    let answer = agree(real, naive)?;
    if let Ok((real, changed)) = &answer {
        same("changed by a jump", &real.done.changed(), &changed.is_some())?;
    }
    moved(world, index, asking, answer.map(|(real, also)| (real, also.unwrap_or_default())))
}

fn moved(
    world: &World,
    index: usize,
    asking: &Asking,
    answer: Result<(Moved, Vec<ThreadId>), Refused>,
) -> Result<Answered, Trouble> {
    let (real, also) = match answer {
        Ok(both) => both,
        Err(refused) => return Ok(Answered { refused: Some(refused), also: Vec::new() }),
    };
    let thread = &world.threads[index];
    // Their order does not matter.
    let sorted = |ids: &[ThreadId]| ids.iter().copied().collect::<std::collections::BTreeSet<_>>();
    same("threads that came along", &sorted(&real.also), &sorted(&also))?;
    let walk = || Walk::new(thread, asking.worktree, None);
    same("position", &real.position, &(walk().position() as u64))?;
    same("version", &real.done.version, &(thread.version() as u64))?;
    same("can_undo", &real.can_undo, &walk().step(Unit::Turn, true))?;
    same("can_redo", &real.can_redo, &walk().step(Unit::Turn, false))?;
    Ok(Answered { refused: None, also })
}

/// Returns both results or the common refusal; fails if the two disagree.
pub fn agree<R, N>(
    real: Result<R, ChangeError>,
    naive: Result<N, Refused>,
) -> Result<Result<(R, N), Refused>, Trouble> {
    match (real, naive) {
        (Ok(real), Ok(naive)) => Ok(Ok((real, naive))),
        (Err(error), Err(refused)) => {
            same("refusal", &meaning(&error)?, &refused)?;
            Ok(Err(refused))
        }
        (Ok(_), Err(refused)) => Err(format!("was done, and should be refused: {refused:?}").into()),
        (Err(error), Ok(_)) => Err(format!("was refused, and should be done: {error}").into()),
    }
}

/// Maps an error to the refusal of the model; other errors are failures.
fn meaning(error: &ChangeError) -> Result<Refused, Trouble> {
    Ok(match error {
        ChangeError::Conflict { .. } => Refused::Conflict,
        ChangeError::ThreadDeleted => Refused::ThreadDeleted,
        ChangeError::LastThread => Refused::LastThread,
        ChangeError::TitleTaken(_) => Refused::TitleTaken,
        ChangeError::Title(_) => Refused::Name,
        ChangeError::NothingToUndo => Refused::NothingToUndo,
        ChangeError::NothingToRedo => Refused::NothingToRedo,
        ChangeError::TooDeep(_) => Refused::TooDeep,
        ChangeError::NoSuchVersion { .. } => Refused::NoSuchVersion,
        ChangeError::Refused(refusal) => match refusal {
            Refusal::NoSuchTake => Refused::NoSuchTake,
            Refusal::NoSuchEntry => Refused::NoSuchEntry,
            Refusal::EntryExists(_) => Refused::EntryExists,
            Refusal::EmptyDraft { .. } => Refused::EmptyDraft,
            Refusal::NameTaken(_) => Refused::NameTaken,
            Refusal::LastTake => Refused::LastTake,
            Refusal::OnlyTake => Refused::OnlyTake,
            Refusal::NotAttached(_) => Refused::NotAttached,
            Refusal::NotAUserMessage { .. } => Refused::NotAUserMessage,
            Refusal::Name(_) => Refused::Name,
            Refusal::Setting(_) => Refused::Setting,
            Refusal::TooMuch { .. } => Refused::TooMuch,
            // Every image of the model's entries was attached to them.
            Refusal::NoSuchPicture(_) => return Err(refusal.to_string().into()),
            Refusal::TurnUnfinished => Refused::TurnUnfinished,
            // Requests of this campaign always have prompts, continue running turns and compress nothing.
            Refusal::EmptyPrompt
            | Refusal::EmptySummary
            | Refusal::TurnGone
            | Refusal::SummaryOutdated
            | Refusal::NothingToCompress
            | Refusal::AssistantPrompt { .. } => {
                return Err(format!("refused without a reason: {refusal}").into());
            }
            Refusal::Unavailable(unavailable) => return Err(unavailable.to_string().into()),
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
struct Lesson<'call> {
    timeline: &'call Timeline,
    thread: ThreadId,
    done: Option<&'call Done>,
    known: &'call mut Known,
    entries: HashMap<TakeId, Vec<EntryId>>,
    trouble: Option<Trouble>,
}

impl<'call> Lesson<'call> {
    fn new(
        timeline: &'call Timeline,
        thread: ThreadId,
        done: Option<&'call Done>,
        known: &'call mut Known,
    ) -> Self {
        Self { timeline, thread, done, known, entries: HashMap::new(), trouble: None }
    }

    fn finish(self) -> Result<(), Trouble> {
        self.trouble.map_or(Ok(()), Err)
    }

    fn meet(&mut self, id: [u8; 16]) {
        if !self.known.0.insert(id) {
            self.trouble = Some("an identity was made up twice".into());
        }
    }

    fn read(&self, take: TakeId) -> Result<Vec<EntryId>, Trouble> {
        let looking = self.timeline.look()?;
        let found = looking.state(self.thread)?.take(&looking.queries(), take)?;
        Ok(entry_ids(&looking.queries(), &found.ok_or("the take is missing")?)?)
    }
}

impl Learn for Lesson<'_> {
    fn entry(&mut self, take: TakeId, place: usize) -> EntryId {
        let nobody = EntryId::from_bytes([0; 16]);
        if self.done.is_none() {
            return nobody;
        }
        if !self.entries.contains_key(&take) {
            let read = self.read(take).unwrap_or_else(|trouble| {
                self.trouble = Some(trouble);
                Vec::new()
            });
            self.entries.insert(take, read);
        }
        let entry = self.entries[&take].get(place).copied().unwrap_or(nobody);
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
