//! The campaign: random steps, and a complete comparison at the end.

use std::collections::HashMap;
use std::sync::Arc;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_timeline::{Command, NewThread, Rules, Timeline, Unit};

use super::apply::{self, Agreement, KnownIds, StepOutcome, agree};
use super::clock::ManualClock;
use super::compare::{Checker, closely, same_state};
use super::fault::ModelFault;
use super::generate::{Request, question, question_to_promoted, question_to_source};
use super::log::HistoryWalk;
use super::observe::turn_number;
use super::reference::ExpectedRefusal;
use super::world::{RequestContext, TYPING_PAUSE, World, owner};
use super::{entries, names};
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

const CAMPAIGN: &str = "model";
/// Number of threads in use.
const ACTIVE_THREADS: usize = 6;
/// A thread is retired after this many versions, a long one earlier.
const MAX_VERSIONS: usize = 300;
const MAX_LONG_VERSIONS: usize = 60;
/// Initial number of entries of a long thread.
const LONG_THREAD_ENTRIES: u64 = 2000;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of requests.
    pub steps: u64,
    /// The injected fault.
    pub fault: Option<ModelFault>,
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
pub fn run(options: Options) -> Result<Summary, CampaignError> {
    let scratch = ScratchDir::new().map_err(CampaignError::trouble)?;
    let mut run = Run::start(options, &scratch)?;
    let mut step = 0;
    let outcome = (|| {
        while step < options.steps {
            run.step(step)?;
            step += 1;
        }
        run.finish(&scratch)
    })();
    outcome.map_err(|trouble: BoxError| {
        CampaignError::Violation(Violation {
            campaign: CAMPAIGN,
            seed: options.seed,
            step,
            what: trouble.to_string(),
        })
    })?;
    Ok(run.summary)
}

struct Run {
    clock: Arc<ManualClock>,
    timeline: Timeline,
    project: ProjectId,
    world: World,
    checker: Checker,
    rng: Rng,
    /// Threads in use.
    live: Vec<usize>,
    /// Promotions have the most rules, so after some of them only the two affected threads get this many requests.
    episode: Option<(usize, usize, u64)>,
    /// Running turns, and how many requests they still get.
    turns: HashMap<(ThreadId, Option<TakeId>), (u64, u64)>,
    /// All ids that were generated so far.
    known: KnownIds,
    summary: Summary,
}

impl Run {
    fn start(options: Options, scratch: &ScratchDir) -> Result<Self, CampaignError> {
        let clock = Arc::new(ManualClock::new(options.seed));
        let mut rng = Rng::new(options.seed);
        // Some runs limit the undo depth.
        let depth = rng.once_in(4).then_some(20);
        let rules = Rules { typing_pause: TYPING_PAUSE, depth };
        let timeline =
            Timeline::open_with(scratch.path(), rules, clock.clone()).map_err(CampaignError::trouble)?;
        Ok(Self {
            clock,
            timeline,
            project: ProjectId::from_bytes([7; 16]),
            world: World::new(depth.map(|depth| depth as usize), options.fault),
            checker: Checker::default(),
            rng,
            live: Vec::new(),
            episode: None,
            turns: HashMap::new(),
            known: KnownIds::default(),
            summary: Summary::default(),
        })
    }

    fn step(&mut self, step: u64) -> Result<(), BoxError> {
        self.summary.steps += 1;
        self.tick();
        if self.live.len() < ACTIVE_THREADS || self.rng.once_in(400) {
            return self.create();
        }
        let (index, question) = self.question();
        let asking = self.asking(index, &question);
        let answered = match &question {
            Request::There if self.rng.once_in(3) => self.far_and_back(index)?,
            Request::There => self.there_and_back(index)?,
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
            let other = self.world.find(other).ok_or("an unexpected thread exists")?;
            self.checker.thread(&self.timeline, &self.world.threads[other])?;
            // A retired thread has too little data for further requests.
            if !self.world.threads[other].is_whole() {
                continue;
            }
            if matches!(question, Request::Promote(..)) {
                self.episode = Some((index, other, self.rng.below(12)));
            }
            if !self.live.contains(&other) && self.live.len() < ACTIVE_THREADS + 2 {
                self.live.push(other);
            }
        }
        if step.is_multiple_of(32) {
            closely(&self.timeline, &self.world.threads[index], &mut self.rng)?;
        }
        self.set_aside(index)
    }

    /// Advances the clock, usually by less than a typing pause; sometimes sets it back.
    fn tick(&mut self) {
        let by = match self.rng.below(30) {
            0..=3 => 0,
            4 => TYPING_PAUSE - 1,
            5 => TYPING_PAUSE,
            6 => -700,
            7..=9 => 60_000,
            _ => self.rng.below(900) as i64,
        };
        self.clock.advance(by);
        self.world.now = self.clock.shows();
    }

    fn create(&mut self) -> Result<(), BoxError> {
        let title = (!self.rng.once_in(3)).then(|| names::name(&mut self.rng));
        let private = self.rng.once_in(4);
        let asking = RequestContext { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let new = NewThread { title: title.clone(), private, ..NewThread::in_project(self.project) };
        let real = self.timeline.create_thread(new, apply::caller(&asking));
        let reference = self.world.title_for_new(title.as_deref());
        let Agreement::Done(done, title) = agree(real, reference)? else {
            self.summary.refused += 1;
            return Ok(());
        };
        let take = self.timeline.read()?.state(done.thread)?.active;
        self.world.create(done.thread, take, title, private, None);
        let index = self.world.threads.len() - 1;
        self.live.push(index);
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if !self.live.iter().any(|live| self.world.threads[*live].long) {
            let command = entries::add_many(take, LONG_THREAD_ENTRIES, self.world.now, &mut self.rng);
            self.world.threads[index].long = true;
            self.change(index, &command, &asking)?;
            self.checker.thread(&self.timeline, &self.world.threads[index])?;
        }
        Ok(())
    }

    /// The next request, and its thread.
    fn question(&mut self) -> (usize, Request) {
        let now = self.world.now;
        if let Some((source, promoted, left @ 1..)) = self.episode {
            self.episode = Some((source, promoted, left - 1));
            return if self.rng.once_in(3) {
                (source, question_to_source(&mut self.rng))
            } else {
                let question = question_to_promoted(&self.world.threads[promoted], now, &mut self.rng);
                (promoted, question)
            };
        }
        let index = self.choose();
        (index, question(&self.world.threads[index], now, &mut self.rng))
    }

    /// A random thread; long ones are chosen less often, because comparing them is slow.
    fn choose(&mut self) -> usize {
        loop {
            let index = self.live[self.rng.index(self.live.len())];
            if !self.world.threads[index].long || self.rng.once_in(15) {
                return index;
            }
        }
    }

    fn asking(&mut self, index: usize, question: &Request) -> RequestContext {
        let thread = &self.world.threads[index];
        // Each take has its own turns, interleaved randomly.
        let take = match question {
            Request::Change(command) => owner(command),
            _ => None,
        };
        let moves = matches!(question, Request::Undo(..) | Request::Redo(..) | Request::Jump(..));
        let takes = &thread.picture().takes;
        let worktree = (moves && self.rng.once_in(4)).then(|| takes[self.rng.index(takes.len())].id);
        let worktree = worktree.filter(|take| *take != thread.picture().active);
        let actors = [Actor::Human, Actor::Human, Actor::Human, Actor::Agent];
        let actor = actors[self.rng.index(actors.len())].clone();
        let expected = match self.rng.below(30) {
            0 => Some(thread.version() - 1),
            1 => Some(thread.version() + 1),
            2..=9 => Some(thread.version()),
            _ => None,
        };
        if self.rng.once_in(8) {
            let turn = (self.summary.steps, self.rng.below(6));
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
            Request::Change(Command::StartTurn { start, .. }) => Some(turn_number(start.turn)),
            Request::Change(Command::AdvanceTurn { advance, .. }) => Some(turn_number(advance.turn)),
            _ => turn,
        };
        RequestContext { actor, turn, expected, worktree }
    }

    fn ask(
        &mut self,
        index: usize,
        question: &Request,
        asking: &RequestContext,
    ) -> Result<StepOutcome, BoxError> {
        let (timeline, world) = (&self.timeline, &mut self.world);
        let answered = match question {
            Request::Change(command) => return self.change(index, command, asking),
            Request::Promote(take, title) => {
                apply::promote(timeline, world, index, *take, title.as_deref(), asking)
            }
            Request::Undo(unit, steps) => apply::undo(timeline, world, index, (*unit, *steps), asking),
            Request::Redo(unit, steps) => apply::redo(timeline, world, index, (*unit, *steps), asking),
            Request::There => apply::undo(timeline, world, index, (Unit::Turn, 1), asking),
            Request::Jump(version) => apply::jump(timeline, world, index, *version, asking),
        };
        answered.map_err(|trouble| format!("{}: {trouble}", shortened(question)).into())
    }

    fn change(
        &mut self,
        index: usize,
        command: &Command,
        asking: &RequestContext,
    ) -> Result<StepOutcome, BoxError> {
        apply::change(&self.timeline, &mut self.world, &mut self.known, index, command, asking)
            .map_err(|trouble| format!("{}: {trouble}", shortened(command)).into())
    }

    /// Undo, then redo: if nothing can be redone before, this leads back to the same state.
    fn there_and_back(&mut self, index: usize) -> Result<StepOutcome, BoxError> {
        let asking = RequestContext { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let steps = if self.rng.once_in(2) { 1 } else { 1 + self.rng.below(6) };
        let nothing_ahead = HistoryWalk::new(&self.world.threads[index], None, None).nothing_ahead(steps);
        let before = self.timeline.read()?.head(self.world.threads[index].id)?.operation.after;
        let there = apply::undo(&self.timeline, &mut self.world, index, (Unit::Turn, steps), &asking)?;
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if there.refused.is_some() {
            return Ok(there);
        }
        let mut back = apply::redo(&self.timeline, &mut self.world, index, (Unit::Turn, steps), &asking)?;
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
    fn far_and_back(&mut self, index: usize) -> Result<StepOutcome, BoxError> {
        let asking = RequestContext { actor: Actor::Human, turn: None, expected: None, worktree: None };
        let version = self.world.threads[index].version();
        let far = 1 + self.rng.index(version);
        let before = self.timeline.read()?.head(self.world.threads[index].id)?.operation.after;
        let there = apply::jump(&self.timeline, &mut self.world, index, far, &asking)?;
        self.checker.thread(&self.timeline, &self.world.threads[index])?;
        if there.refused.is_some() {
            return Ok(there);
        }
        let mut back = apply::jump(&self.timeline, &mut self.world, index, version, &asking)?;
        let after = self.checker.thread(&self.timeline, &self.world.threads[index])?;
        let outline = || self.world.threads[index].outline();
        let what = || format!("state after a jump from {version} to {far} and back{}", outline());
        same_state(what, &after, &before)?;
        self.summary.identities += 1;
        back.also.extend(there.also);
        Ok(back)
    }

    fn count(&mut self, answered: &StepOutcome) {
        self.summary.refused += u64::from(answered.refused.is_some());
        self.summary.conflicts += u64::from(answered.refused == Some(ExpectedRefusal::Conflict));
    }

    /// Retires a thread: it is compared completely, and then only its hashes are stored.
    fn set_aside(&mut self, index: usize) -> Result<(), BoxError> {
        let thread = &mut self.world.threads[index];
        if thread.version() < if thread.long { MAX_LONG_VERSIONS } else { MAX_VERSIONS } {
            return Ok(());
        }
        self.episode = None;
        if self.world.fault == Some(ModelFault::AnOldVersionIsWrong) {
            thread.log[10].digest[0] ^= 1;
        }
        self.checker.forget_seen();
        self.checker.history(&self.timeline, thread)?;
        let last = thread.version() - 1;
        for moment in &mut thread.log[..last] {
            moment.picture = None;
        }
        self.live.retain(|live| *live != index);
        Ok(())
    }

    /// Reopens the store and compares every version of every thread.
    fn finish(&mut self, scratch: &ScratchDir) -> Result<(), BoxError> {
        let rules = Rules { typing_pause: TYPING_PAUSE, depth: self.world.depth.map(|depth| depth as u64) };
        // The first is closed when it is replaced; the writer closes implicitly.
        self.timeline = Timeline::open_with(scratch.path(), rules, self.clock.clone())?;
        self.checker.forget_seen();
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
