//! The campaign: random steps, and a complete comparison at the end.

use std::collections::HashMap;
use std::sync::Arc;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_timeline::{Command, NewThread, Rules, Timeline, Unit};

use super::ask::{self, Answered, Known, agree};
use super::clock::StandingClock;
use super::compare::{Checker, closely, same_state};
use super::generate::{Question, question, question_to_promoted, question_to_source};
use super::log::Walk;
use super::mutant::Mutant;
use super::naive::Refused;
use super::observe::turn_number;
use super::world::{Asking, TYPING_PAUSE, World, owner};
use super::{speech, words};
use crate::dice::Dice;
use crate::ground::Ground;
use crate::violation::{Failed, Trouble, Violation};

const CAMPAIGN: &str = "model";
/// Number of threads in use.
const LIVE: usize = 6;
/// A thread is retired after this many versions, a long one earlier.
const LIFE: usize = 300;
const LONG_LIFE: usize = 60;
/// Initial number of entries of a long thread.
const LONG: u64 = 2000;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of requests.
    pub steps: u64,
    /// The injected fault.
    pub mutant: Option<Mutant>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of requests.
    pub steps: u64,
    /// Requests that both refused.
    pub refused: u64,
    /// Of these, stale callers.
    pub conflicts: u64,
    /// Times that undo and redo led back to the same state.
    pub identities: u64,
    /// Number of threads.
    pub threads: u64,
    /// Versions that were loaded again at the end.
    pub versions: u64,
}

/// Runs the campaign and compares everything at the end.
pub fn run(options: Options) -> Result<Summary, Failed> {
    let ground = Ground::new().map_err(Failed::trouble)?;
    let mut run = Run::start(options, &ground)?;
    let mut step = 0;
    let outcome = (|| {
        while step < options.steps {
            run.step(step)?;
            step += 1;
        }
        run.finish(&ground)
    })();
    outcome.map_err(|trouble: Trouble| {
        Failed::Violation(Violation {
            campaign: CAMPAIGN,
            seed: options.seed,
            step,
            what: trouble.to_string(),
        })
    })?;
    Ok(run.summary)
}

struct Run {
    clock: Arc<StandingClock>,
    timeline: Timeline,
    project: ProjectId,
    world: World,
    checker: Checker,
    dice: Dice,
    /// Threads in use.
    live: Vec<usize>,
    /// Promotions have the most rules, so after some of them only the two affected threads get this many requests.
    episode: Option<(usize, usize, u64)>,
    /// Running turns, and how many requests they still get.
    turns: HashMap<(ThreadId, Option<TakeId>), (u64, u64)>,
    /// All ids that were generated so far.
    known: Known,
    summary: Summary,
}

impl Run {
    fn start(options: Options, ground: &Ground) -> Result<Self, Failed> {
        let clock = Arc::new(StandingClock::new(options.seed));
        let mut dice = Dice::new(options.seed);
        // Some runs limit the undo depth.
        let depth = dice.once_in(4).then_some(40);
        let rules = Rules { typing_pause: TYPING_PAUSE, depth };
        let timeline = Timeline::open_with(ground.path(), rules, clock.clone()).map_err(Failed::trouble)?;
        Ok(Self {
            clock,
            timeline,
            project: ProjectId::from_bytes([7; 16]),
            world: World::new(depth.map(|depth| depth as usize), options.mutant),
            checker: Checker::default(),
            dice,
            live: Vec::new(),
            episode: None,
            turns: HashMap::new(),
            known: Known::default(),
            summary: Summary::default(),
        })
    }

    fn step(&mut self, step: u64) -> Result<(), Trouble> {
        self.summary.steps += 1;
        self.tick();
        if self.live.len() < LIVE || self.dice.once_in(400) {
            return self.create();
        }
        let (index, question) = self.question();
        let asking = self.asking(index, &question);
        let answered = match &question {
            Question::There if self.dice.once_in(3) => self.far_and_back(index)?,
            Question::There => self.there_and_back(index)?,
            question => self.ask(index, question, &asking)?,
        };
        self.count(&answered);
        self.checker
            .thread(&self.timeline, &self.world.threads[index])
            .map_err(|trouble| format!("after {}: {trouble}", shortened(&question)))?;
        // It reads a state for every value that was ever set, so not after every step.
        if step.is_multiple_of(16) {
            self.world
                .check_shared(&self.timeline, index)
                .map_err(|trouble| format!("shared after {}: {trouble}", shortened(&question)))?;
        }
        for other in answered.also {
            let other = self.world.find(other).ok_or("a thread came from nowhere")?;
            self.checker.thread(&self.timeline, &self.world.threads[other])?;
            // A retired thread has too little data for further requests.
            if !self.world.threads[other].is_whole() {
                continue;
            }
            if matches!(question, Question::Promote(..)) {
                self.episode = Some((index, other, self.dice.below(12)));
            }
            if !self.live.contains(&other) && self.live.len() < LIVE + 2 {
                self.live.push(other);
            }
        }
        if step.is_multiple_of(32) {
            closely(&self.timeline, &self.world.threads[index], &mut self.dice)?;
        }
        self.set_aside(index)
    }

    /// Advances the clock, usually by less than a typing pause; sometimes sets it back.
    fn tick(&mut self) {
        let by = match self.dice.below(30) {
            0..=3 => 0,
            4 => TYPING_PAUSE - 1,
            5 => TYPING_PAUSE,
            6 => -700,
            7..=9 => 60_000,
            _ => self.dice.below(900) as i64,
        };
        self.clock.advance(by);
        self.world.now = self.clock.shows();
    }

    fn create(&mut self) -> Result<(), Trouble> {
        let title = (!self.dice.once_in(3)).then(|| words::name(&mut self.dice));
        let private = self.dice.once_in(4);
        let asking = Asking { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let new = NewThread { title: title.clone(), private, ..NewThread::in_project(self.project) };
        let real = self.timeline.create_thread(new, ask::caller(&asking));
        let naive = self.world.title_for_new(title.as_deref());
        let Ok((done, title)) = agree(real, naive)? else {
            self.summary.refused += 1;
            return Ok(());
        };
        let take = self.timeline.look()?.state(done.thread)?.active;
        self.world.create(done.thread, take, title, private, None);
        let index = self.world.threads.len() - 1;
        self.live.push(index);
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if !self.live.iter().any(|live| self.world.threads[*live].long) {
            let command = speech::add_many(take, LONG, self.world.now, &mut self.dice);
            self.world.threads[index].long = true;
            self.change(index, &command, &asking)?;
            self.checker.thread(&self.timeline, &self.world.threads[index])?;
        }
        Ok(())
    }

    /// The next request, and its thread.
    fn question(&mut self) -> (usize, Question) {
        let now = self.world.now;
        if let Some((source, promoted, left @ 1..)) = self.episode {
            self.episode = Some((source, promoted, left - 1));
            return if self.dice.once_in(3) {
                (source, question_to_source(&mut self.dice))
            } else {
                let question = question_to_promoted(&self.world.threads[promoted], now, &mut self.dice);
                (promoted, question)
            };
        }
        let index = self.choose();
        (index, question(&self.world.threads[index], now, &mut self.dice))
    }

    /// A random thread; long ones are chosen less often, because comparing them is slow.
    fn choose(&mut self) -> usize {
        loop {
            let index = self.live[self.dice.index(self.live.len())];
            if !self.world.threads[index].long || self.dice.once_in(15) {
                return index;
            }
        }
    }

    fn asking(&mut self, index: usize, question: &Question) -> Asking {
        let thread = &self.world.threads[index];
        // Each take has its own turns, interleaved randomly.
        let take = match question {
            Question::Change(command) => owner(command),
            _ => None,
        };
        let moves = matches!(question, Question::Undo(..) | Question::Redo(..) | Question::Jump(..));
        let takes = &thread.picture().takes;
        let worktree = (moves && self.dice.once_in(4)).then(|| takes[self.dice.index(takes.len())].id);
        let worktree = worktree.filter(|take| *take != thread.picture().active);
        let actors = [Actor::Human, Actor::Human, Actor::Human, Actor::Agent];
        let actor = actors[self.dice.index(actors.len())].clone();
        let expected = match self.dice.below(30) {
            0 => Some(thread.version() - 1),
            1 => Some(thread.version() + 1),
            2..=9 => Some(thread.version()),
            _ => None,
        };
        if self.dice.once_in(8) {
            let turn = (self.summary.steps, self.dice.below(6));
            self.turns.entry((thread.id, take)).or_insert(turn);
        }
        let turn = match self.turns.get_mut(&(thread.id, take)) {
            Some((turn, left)) if *left > 0 => {
                *left -= 1;
                Some(*turn)
            }
            _ => {
                self.turns.remove(&(thread.id, take));
                None
            }
        };
        let turn = match question {
            Question::Change(Command::StartTurn { start, .. }) => Some(turn_number(start.turn)),
            Question::Change(Command::AdvanceTurn { advance, .. }) => Some(turn_number(advance.turn)),
            _ => turn,
        };
        Asking { actor, turn, expected, worktree }
    }

    fn ask(&mut self, index: usize, question: &Question, asking: &Asking) -> Result<Answered, Trouble> {
        let (timeline, world) = (&self.timeline, &mut self.world);
        let answered = match question {
            Question::Change(command) => return self.change(index, command, asking),
            Question::Promote(take, title) => {
                ask::promote(timeline, world, index, *take, title.as_deref(), asking)
            }
            Question::Undo(unit, steps) => ask::undo(timeline, world, index, (*unit, *steps), asking),
            Question::Redo(unit, steps) => ask::redo(timeline, world, index, (*unit, *steps), asking),
            Question::There => ask::undo(timeline, world, index, (Unit::Turn, 1), asking),
            Question::Jump(version) => ask::jump(timeline, world, index, *version, asking),
        };
        answered.map_err(|trouble| format!("{}: {trouble}", shortened(question)).into())
    }

    fn change(&mut self, index: usize, command: &Command, asking: &Asking) -> Result<Answered, Trouble> {
        ask::change(&self.timeline, &mut self.world, &mut self.known, index, command, asking)
            .map_err(|trouble| format!("{}: {trouble}", shortened(command)).into())
    }

    /// Undo, then redo: if nothing can be redone before, this leads back to the same state.
    fn there_and_back(&mut self, index: usize) -> Result<Answered, Trouble> {
        let asking = Asking { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let steps = if self.dice.once_in(2) { 1 } else { 1 + self.dice.below(6) };
        let nothing_ahead = Walk::new(&self.world.threads[index], None, None).nothing_ahead(steps);
        let before = self.timeline.look()?.head(self.world.threads[index].id)?.operation.after;
        let there = ask::undo(&self.timeline, &mut self.world, index, (Unit::Turn, steps), &asking)?;
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if there.refused.is_some() {
            return Ok(there);
        }
        let mut back = ask::redo(&self.timeline, &mut self.world, index, (Unit::Turn, steps), &asking)?;
        let after = self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if nothing_ahead {
            let what = || {
                format!("state after undo {steps} and redo {steps}{}", self.world.threads[index].outline())
            };
            same_state(what, &after, &before)?;
            self.summary.identities += 1;
        }
        back.also.extend(there.also);
        Ok(back)
    }

    /// A jump anywhere and back: leads to the same state.
    fn far_and_back(&mut self, index: usize) -> Result<Answered, Trouble> {
        let asking = Asking { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let version = self.world.threads[index].version();
        let far = 1 + self.dice.index(version);
        let before = self.timeline.look()?.head(self.world.threads[index].id)?.operation.after;
        let there = ask::jump(&self.timeline, &mut self.world, index, far, &asking)?;
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if there.refused.is_some() {
            return Ok(there);
        }
        let mut back = ask::jump(&self.timeline, &mut self.world, index, version, &asking)?;
        let after = self.checker.thread(&self.timeline, &self.world.threads[index])?;
        let outline = || self.world.threads[index].outline();
        let what = || format!("state after a jump from {version} to {far} and back{}", outline());
        same_state(what, &after, &before)?;
        self.summary.identities += 1;
        back.also.extend(there.also);
        Ok(back)
    }

    fn count(&mut self, answered: &Answered) {
        self.summary.refused += u64::from(answered.refused.is_some());
        self.summary.conflicts += u64::from(answered.refused == Some(Refused::Conflict));
    }

    /// Retires a thread: it is compared completely, and then only its hashes are stored.
    fn set_aside(&mut self, index: usize) -> Result<(), Trouble> {
        let thread = &mut self.world.threads[index];
        if thread.version() < if thread.long { LONG_LIFE } else { LIFE } {
            return Ok(());
        }
        self.episode = None;
        if self.world.mutant == Some(Mutant::AnOldVersionIsMisremembered) {
            thread.log[10].digest[0] ^= 1;
        }
        self.checker.look_afresh();
        self.checker.history(&self.timeline, thread)?;
        let last = thread.version() - 1;
        for moment in &mut thread.log[..last] {
            moment.picture = None;
        }
        self.live.retain(|live| *live != index);
        Ok(())
    }

    /// Reopens the store and compares every version of every thread.
    fn finish(&mut self, ground: &Ground) -> Result<(), Trouble> {
        let rules = Rules { typing_pause: TYPING_PAUSE, depth: self.world.depth.map(|depth| depth as u64) };
        // The first is closed when it is replaced; the writer closes implicitly.
        self.timeline = Timeline::open_with(ground.path(), rules, self.clock.clone())?;
        self.checker.look_afresh();
        for thread in &self.world.threads {
            self.checker.thread(&self.timeline, thread)?;
            self.checker.history(&self.timeline, thread)?;
            self.summary.versions += thread.version() as u64;
        }
        let found = self.timeline.store().verify(&mut |_| {})?;
        if let Some(problem) = found.problems.first() {
            return Err(format!("verify: {problem}").into());
        }
        self.summary.threads = self.world.threads.len() as u64;
        Ok(())
    }
}

/// Shortens a request for a message.
fn shortened(question: &impl std::fmt::Debug) -> String {
    let mut text = format!("{question:?}");
    if let Some((end, _)) = text.char_indices().nth(300) {
        text.truncate(end);
    }
    text
}
