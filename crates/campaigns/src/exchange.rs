//! Two machines that exchange a thread as exports, in both directions, while both work on it.
//!
//! ```text
//!   machine 0: store, folder          export ──► import         machine 1: store, folder
//!   turns, undo, redo, takes  ◄──────────────────────────────►  turns, undo, redo, takes
//!
//!   the other log begins with this one   the new operations arrive, and a jump brings conversation and files of their end
//!   this log begins with the other one   nothing is new
//!   both went on                         refused, and nothing changes; a copy arrives beside the original
//! ```
//!
//! The expected entries and files of each operation are those that its own machine showed right after it, by the
//! operation's id, which is the same everywhere. Files that only users write are in the way, but not compared. A private
//! thread on each machine must never arrive on the other.

mod machine;

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_timeline::{Caller, Command, FileError, Goal, ImportMode, MoveOptions, Unit};

use crate::rng::Rng;
use crate::secrets::places;
use crate::violation::{BoxError, CampaignError, Violation, caught};

use machine::{Machine, MachineView};

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeFault {
    /// An import brings the conversation and leaves the files.
    FilesStayBehind,
    /// The last operation of an export is lost.
    LosesAnOperation,
    /// A private thread is sent.
    SendsPrivateThread,
    /// An undo in a copy reverts the work of the original without asking.
    CopiesUndoTheOriginal,
}

impl ExchangeFault {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::FilesStayBehind,
        Self::LosesAnOperation,
        Self::SendsPrivateThread,
        Self::CopiesUndoTheOriginal,
    ];
}

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct ExchangePlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of steps.
    pub steps: u64,
    /// The injected fault.
    pub mistake: Option<ExchangeFault>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSummary {
    /// Number of steps.
    pub steps: u64,
    /// Imports that brought new operations.
    pub continued: u64,
    /// Imports that were refused, because both machines had gone on.
    pub diverged: u64,
    /// Copies, on either machine.
    pub copies: u64,
}

/// Both machines are replaced after this many steps, because logs grow.
const STEPS_PER_WORLD: u64 = 60;

/// Every control must be caught within this many steps.
const CONTROL_STEPS: u64 = 1_500;

/// Runs the campaign.
pub fn exchange(plan: ExchangePlan) -> Result<ExchangeSummary, CampaignError> {
    let mut rng = Rng::new(plan.seed);
    let mut summary = ExchangeSummary::default();
    while summary.steps < plan.steps {
        let mut world = World::new(rng.split(), plan.mistake)?;
        let steps = STEPS_PER_WORLD.min(plan.steps - summary.steps);
        for step in 1..=steps {
            summary.steps += 1;
            let what = world.step(&mut summary)?;
            let broken = match world.broken.take() {
                None if step == steps || world.has_parted => world.verify()?,
                broken => broken,
            };
            if let Some(broken) = broken {
                let what = format!("{what}: {broken}");
                let (seed, step) = (plan.seed, summary.steps);
                return Err(CampaignError::Violation(Violation { campaign: "exchange", seed, step, what }));
            }
            if world.has_parted {
                break;
            }
        }
    }
    Ok(summary)
}

/// The controls: each fault must be caught. Returns their number.
pub fn controls(seed: u64) -> Result<usize, BoxError> {
    for mistake in ExchangeFault::ALL {
        let plan = ExchangePlan { seed, steps: CONTROL_STEPS, mistake: Some(mistake) };
        caught(&format!("{mistake:?}"), exchange(plan))?;
    }
    Ok(ExchangeFault::ALL.len())
}

/// The text of the private threads.
const PRIVATE: &str = "kept-on-this-machine-4711";

struct World {
    machines: [Machine; 2],
    /// What each operation showed on the machine that made it.
    shown: BTreeMap<ContentId, MachineView>,
    rng: Rng,
    mistake: Option<ExchangeFault>,
    broken: Option<String>,
    number: u64,
    /// The machine that works on the thread.
    holder: usize,
    /// Whether both logs went on, which no exchange joins again.
    has_parted: bool,
}

impl World {
    fn new(mut rng: Rng, mistake: Option<ExchangeFault>) -> Result<Self, BoxError> {
        let mut first = Machine::new(rng.next_u64(), 0)?;
        first.create_thread()?;
        let mut second = Machine::new(rng.next_u64(), 1)?;
        second.thread = first.thread;
        second.import(first.export()?, ImportMode::Same)?;
        // An import moves no file: the project came to the other machine in another way.
        second.check_out(&first.shown()?)?;
        let mut world = Self {
            machines: [first, second],
            shown: BTreeMap::new(),
            rng,
            mistake,
            broken: None,
            number: 0,
            holder: 0,
            has_parted: false,
        };
        for machine in &world.machines {
            machine.add_private_thread(PRIVATE)?;
        }
        world.remember(0)?;
        Ok(world)
    }

    /// Remembers what the last operation of a machine shows.
    fn remember(&mut self, at: usize) -> Result<(), BoxError> {
        let machine = &self.machines[at];
        let last = *machine.log()?.last().ok_or("an empty log")?;
        self.shown.insert(last, machine.shown()?);
        Ok(())
    }

    fn step(&mut self, summary: &mut ExchangeSummary) -> Result<String, BoxError> {
        // Mostly one machine works until it sends the thread, so that the logs rarely part.
        let at = if self.rng.once_in(15) { 1 - self.holder } else { self.holder };
        match self.rng.below(20) {
            0..=5 => self.turn(at),
            6 | 7 => self.go(at, Goal::Undo(Unit::Turn, 1)),
            8 => self.go(at, Goal::Redo(Unit::Turn, 1)),
            9 | 10 => self.branch(at),
            11 => self.switch(at),
            12 => {
                self.number += 1;
                self.machines[at].edit_by_hand(self.number)?;
                Ok(format!("the user of machine {at} writes"))
            }
            13 => self.copy_here(at, summary),
            _ => self.send(at, 1 - at, summary),
        }
    }

    /// A message, and a change of files by the agent.
    fn turn(&mut self, at: usize) -> Result<String, BoxError> {
        self.number += 1;
        let file = format!("f{}", self.rng.below(5));
        self.machines[at].turn(&file, self.number)?;
        self.remember(at)?;
        Ok(format!("a turn on machine {at} changes {file}"))
    }

    fn go(&mut self, at: usize, goal: Goal) -> Result<String, BoxError> {
        let machine = &self.machines[at];
        let before = machine.shown()?;
        let alone = MoveOptions::default();
        match machine.working_copy.go(machine.thread, goal, Caller::human(), alone) {
            Ok(_) => self.remember(at)?,
            Err(FileError::Change(_)) if machine.shown()? == before => {}
            Err(error) => self.broken = Some(format!("refused: {error}")),
        }
        Ok(format!("{goal:?} on machine {at}"))
    }

    fn branch(&mut self, at: usize) -> Result<String, BoxError> {
        let machine = &self.machines[at];
        let (takes, active) = machine.takes()?;
        if takes.len() > 5 {
            return self.switch(at);
        }
        machine.change(Command::Branch { from: active, at: None, name: None })?;
        self.remember(at)?;
        Ok(format!("a branch on machine {at}"))
    }

    fn switch(&mut self, at: usize) -> Result<String, BoxError> {
        let (takes, active) = self.machines[at].takes()?;
        let others: Vec<_> = takes.into_iter().filter(|take| *take != active).collect();
        let Some(take) = self.rng.pick(&others).copied() else { return Ok("no other take".to_owned()) };
        self.machines[at].change(Command::Switch { take })?;
        self.remember(at)?;
        Ok(format!("a switch on machine {at}"))
    }

    /// Sends the thread from one machine to the other.
    fn send(&mut self, from: usize, to: usize, summary: &mut ExchangeSummary) -> Result<String, BoxError> {
        let (sent, known) = (self.machines[from].log()?, self.machines[to].log()?);
        // A command that was refused may have recorded edits of the user, which only concern this machine.
        if sent.last().is_some_and(|last| !self.shown.contains_key(last)) {
            self.remember(from)?;
        }
        let before = self.machines[to].shown()?;
        if self.mistake == Some(ExchangeFault::SendsPrivateThread) {
            let private = self.machines[from].export_private()?;
            self.machines[to].import(private, ImportMode::Same)?;
        }
        let (export, what) = (self.machines[from].export()?, format!("from machine {from} to {to}"));
        let common = sent.iter().zip(&known).take_while(|(sent, known)| sent == known).count();
        let outcome = self.machines[to].import(export.clone(), ImportMode::Same);
        if common < sent.len() && common < known.len() {
            let unchanged = self.machines[to].log()? == known && self.machines[to].shown()? == before;
            if outcome.is_ok() || !unchanged {
                self.broken = Some(format!(
                    "both threads had new operations, but the import was not refused: {outcome:?}"
                ));
                return Ok(what);
            }
            summary.diverged += 1;
            self.has_parted = true;
            return self.send_copy(to, export, &sent, &before, summary);
        }
        let imported = match outcome {
            Ok(imported) => imported,
            Err(error) => {
                self.broken = Some(format!("refused: {error}"));
                return Ok(what);
            }
        };
        let mut new = (sent.len() - common) as u64;
        if self.mistake == Some(ExchangeFault::LosesAnOperation) {
            new += 1;
        }
        let arrived = self.machines[to].log()?;
        let follows = arrived.starts_with(&sent) || known.len() > sent.len() && arrived == known;
        if imported.new_operations != new || !follows {
            let count = imported.new_operations;
            self.broken = Some(format!("{count} operations arrived instead of {new}"));
            return Ok(what);
        }
        if new == 0 {
            self.expect(to, &before, "an import without anything new");
            return Ok(what);
        }
        summary.continued += 1;
        self.holder = to;
        self.arrive(to, imported.jump_to, *sent.last().ok_or("an empty log")?, before)?;
        Ok(what)
    }

    /// After an import that continued the thread: conversation and files belong to the same operation.
    fn arrive(
        &mut self,
        to: usize,
        jump_to: Option<u64>,
        last: ContentId,
        before: MachineView,
    ) -> Result<(), BoxError> {
        let expected = self.shown.get(&last).ok_or("an operation that no machine made")?.clone();
        let skips = self.mistake == Some(ExchangeFault::FilesStayBehind);
        if let Some(version) = jump_to {
            // Nothing moves before the jump.
            self.expect(to, &before, "an import that moves no file");
            if skips {
                self.expect(to, &expected, "a jump that was left out");
                return Ok(());
            }
            let machine = &self.machines[to];
            let goal = Goal::Jump(version);
            machine.working_copy.go(machine.thread, goal, Caller::human(), MoveOptions::default())?;
            self.remember(to)?;
        }
        self.expect(to, &expected, "an import");
        self.remember(to)
    }

    /// A copy of the other machine's thread, beside this one's.
    fn send_copy(
        &mut self,
        to: usize,
        export: Vec<u8>,
        sent: &[ContentId],
        before: &MachineView,
        summary: &mut ExchangeSummary,
    ) -> Result<String, BoxError> {
        let expected = sent.last().and_then(|last| self.shown.get(last)).ok_or("an unknown operation")?;
        let machine = &self.machines[to];
        let copy = machine.import(export, ImportMode::Copy)?.thread;
        if machine.texts_of(copy)? != expected.texts {
            self.broken = Some("a copy has other entries than its original".to_owned());
        }
        machine.archive(copy)?;
        self.expect(to, before, "a copy beside the thread");
        summary.copies += 1;
        Ok(format!("a copy on machine {to}"))
    }

    /// A copy in the project of the original: its undo must not revert the work of the original without asking.
    fn copy_here(&mut self, at: usize, summary: &mut ExchangeSummary) -> Result<String, BoxError> {
        let machine = &self.machines[at];
        let before = machine.shown()?;
        let copy = machine.import(machine.export()?, ImportMode::Copy)?.thread;
        let mut options = MoveOptions::default();
        if self.mistake == Some(ExchangeFault::CopiesUndoTheOriginal) {
            options.shared = retake_timeline::SharedChanges::Undo;
        }
        let undone = machine.working_copy.go(copy, Goal::Undo(Unit::Turn, 1), Caller::human(), options);
        if let Err(error) = &undone
            && !matches!(error, FileError::SharedChanges(_) | FileError::Change(_))
        {
            self.broken = Some(format!("an undo in a copy was refused: {error}"));
        }
        machine.archive(copy)?;
        self.expect(at, &before, "an undo in a copy that did not ask");
        summary.copies += 1;
        Ok(format!("a copy of the thread on its own machine {at}"))
    }

    /// The machine must show this.
    fn expect(&mut self, at: usize, expected: &MachineView, after: &str) {
        let found = match self.machines[at].shown() {
            Ok(found) => found,
            Err(error) => {
                self.broken = Some(format!("machine {at} cannot be read after {after}: {error}"));
                return;
            }
        };
        if self.broken.is_none() && found != *expected {
            self.broken =
                Some(format!("after {after}, machine {at} shows {found:?} instead of {expected:?}"));
        }
    }

    /// Both stores are intact, and neither has the private thread of the other.
    fn verify(&self) -> Result<Option<String>, BoxError> {
        for (at, machine) in self.machines.iter().enumerate() {
            let found = machine.working_copy.timeline().store().verify(&mut |_| {})?;
            if let Some(problem) = found.problems.first() {
                return Ok(Some(format!("the store of machine {at} is damaged: {problem}")));
            }
            let other = format!("{PRIVATE}-{}", 1 - at);
            let leaked = places(&machine.store(), other.as_bytes())?;
            if !leaked.is_empty() {
                return Ok(Some(format!("a private thread arrived on machine {at}: {leaked:?}")));
            }
        }
        Ok(None)
    }
}
