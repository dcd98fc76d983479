//! The walk: one step after another by dice, and after each of them everything is checked.

use std::collections::BTreeMap;
use std::time::Duration;

use retake_agent::{Again, Beginning, Cancel, CompressError, Keep, Knowing, Outcome, Resuming, TurnError};
use retake_model::command::{Prompt, Refusal};
use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, TakeId};
use retake_model::projection::Wire;
use retake_model::replay::OnConflict;
use retake_model::state::ThreadState;
use retake_timeline::{
    Caller, ChangeError, Command, FileError, Goal, Handling, Moment, NewEntry, SharedChanges, Spot, Unit,
};

use super::check::{Checked, everything, verified};
use super::summaries::{Disturbance, Disturbed};
use super::tools::{Files, compare};
use super::world::{Meddling, QUICK_ANSWER, WINDOW, Watcher, World};
use super::{Mistake, TurnsPlan};
use crate::dice::Dice;
use crate::folder::Folder;
use crate::violation::{Failed, Violation};

/// More takes than this are not kept: each is checked whenever it changes.
const MOST_TAKES: u64 = 6;
/// More entries than this are compressed.
const MOST_ENTRIES: usize = 120;

/// How long a turn may go on after it was told to stop: the tool for 200 ms, and then a snapshot and a sync on a busy
/// machine. The noise lasts for much longer.
const LONGEST_STOP: Duration = Duration::from_secs(6);

/// What a walk came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// All steps.
    pub steps: u64,
    /// Turns that began or went on.
    pub turns: u64,
    /// Turns that came to their end.
    pub completed: u64,
    /// Turns that somebody stopped, or undid while they ran.
    pub stopped: u64,
    /// Of these, turns that were told to stop by a letter while a tool printed all the time.
    pub silenced: u64,
    /// And turns that were told to stop while they compressed themselves.
    pub summaries_stopped: u64,
    /// Drafts and titles that were set while a turn compressed itself.
    pub summaries_disturbed: u64,
    /// Turns that failed, and could be resumed.
    pub failed: u64,
    /// Takes that retries made.
    pub forks: u64,
    /// Takes that were made while a turn ran in the one that they came from.
    pub beside: u64,
    /// Retries that could not begin.
    pub refused: u64,
    /// Undos, redos and jumps.
    pub moves: u64,
    /// Requests that the server was sent.
    pub requests: u64,
    /// Those that it answered badly.
    pub failures: u64,
    /// Tool calls that it asked for.
    pub calls: u64,
    /// Projections of whole takes that were checked beside.
    pub projections: u64,
}

impl Walked {
    /// What happened too seldom for a proof.
    pub fn missing(&self) -> Vec<&'static str> {
        let summaries = self.summaries_disturbed + self.summaries_stopped;
        let wanted = [
            ("turns that completed", self.completed, 11),
            ("forks", self.forks, 3),
            ("takes made beside a turn", self.beside, 1),
            ("moves", self.moves, 6),
            ("stops while a tool printed", self.silenced, 1),
            ("summaries that were disturbed", summaries, 2),
        ];
        wanted.into_iter().filter(|(_, found, least)| found < least).map(|(what, ..)| what).collect()
    }
}

/// So many times the turns of the plan are made at most, until everything has happened that is to be proved.
const LONGEST: u64 = 10;

/// Walks until that many turns were made, and on until there were enough of every kind. Which kinds come up depends on
/// time as well as on the dice (a busy machine turns an answer into one that came too late), so the count of turns alone
/// does not say what was tried. A mistake
/// that is still to be made on purpose is waited for in the same way.
pub fn walk(plan: TurnsPlan) -> Result<Walked, Failed> {
    let mut walk = Walk {
        world: World::new(plan)?,
        dice: Dice::new(plan.seed),
        plan,
        walked: Walked::default(),
        checked: Checked::default(),
        takes: 1,
        known: BTreeMap::new(),
        last: None,
    };
    walk.note()?;
    while walk.goes_on() {
        walk.walked.steps += 1;
        let said = walk.step()?;
        let step = walk.walked.steps;
        let broken = |what: String| {
            Failed::Violation(Violation {
                campaign: "turns",
                seed: plan.seed,
                step,
                what: format!("{} {what}", said.0),
            })
        };
        said.1.map_err(broken)?;
        everything(&walk.world, &mut walk.checked, walk.takes).map_err(broken)?;
        walk.note()?;
    }
    verified(&walk.world).map_err(|what| Violation {
        campaign: "turns",
        seed: plan.seed,
        step: walk.walked.steps,
        what,
    })?;
    let mut walked = walk.walked;
    walk.world.assistant.with(|mind| {
        (walked.requests, walked.failures, walked.calls) = (mind.requests, mind.failures, mind.calls);
    });
    Ok(Walked { projections: walk.checked.projections, ..walked })
}

/// What a step was, and what was wrong with it at once.
type Said = (String, Result<(), String>);

#[expect(clippy::unnecessary_wraps, reason = "a step ends with it")]
fn fine(what: &str) -> Result<Said, Failed> {
    Ok((format!("after {what}:"), Ok(())))
}

#[expect(clippy::unnecessary_wraps, reason = "a step ends with it")]
fn wrong(what: &str, problem: impl std::fmt::Display) -> Result<Said, Failed> {
    Ok((format!("{what}:"), Err(problem.to_string())))
}

struct Walk {
    world: World,
    dice: Dice,
    plan: TurnsPlan,
    walked: Walked,
    checked: Checked,
    /// How many takes there should be.
    takes: u64,
    /// How many there should be at each version.
    known: BTreeMap<u64, u64>,
    /// The conversation and the files before the turn that was the last thing to happen.
    last: Option<(ThreadState, Folder)>,
}

/// How a turn begins.
enum Way {
    Run,
    Retry(EntryId, Prompt),
    Resume,
}

impl Walk {
    fn goes_on(&self) -> bool {
        let (turns, least) = (self.walked.turns, self.plan.turns);
        let is_enough = self.plan.mistake.is_none() && self.walked.missing().is_empty();
        turns < least || (!is_enough && turns < least * LONGEST)
    }

    fn note(&mut self) -> Result<(), Failed> {
        self.note_until(self.world.version()?);
        Ok(())
    }

    fn note_until(&mut self, last: u64) {
        let first = self.known.last_key_value().map_or(1, |(version, _)| version + 1);
        for version in first..=last {
            self.known.insert(version, self.takes);
        }
    }

    fn step(&mut self) -> Result<Said, Failed> {
        let last = self.last.take();
        if let Some(mistake) = self.plan.mistake
            && self.walked.turns > 5
            && self.make(mistake)?
        {
            return fine("a mistake");
        }
        let entries = self.world.entries()?;
        let unfinished = self.world.active()?.agent.is_some();
        if unfinished && self.dice.once_in(2) {
            return self.turn(&Way::Resume);
        }
        if entries.len() > MOST_ENTRIES {
            return self.compress();
        }
        let asked: Vec<EntryId> = entries
            .iter()
            .filter(|view| RoleKind::of(&view.entry.role) == RoleKind::User)
            .map(|view| view.id)
            .collect();
        let any = self.dice.pick(&entries).map(|view| view.id);
        let message = self.dice.pick(&asked).copied();
        let take = self.world.active()?.id;
        match (self.dice.below(100), any, message) {
            (0..12, _, Some(at)) if self.takes < MOST_TAKES => {
                let prompt =
                    if self.dice.once_in(2) { Prompt::Same } else { self.prompt("Try it otherwise.") };
                self.turn(&Way::Retry(at, prompt))
            }
            (12..17, _, Some(at)) => self.retry_in_vain(take, at),
            (17..25, ..) => {
                let turns = 1 + self.dice.below(3) / 2;
                self.go(Goal::Undo(Unit::Turn, turns), last)
            }
            (25..30, ..) => self.go(Goal::Redo(Unit::Turn, 1), None),
            (30..34, ..) => {
                let version = 1 + self.dice.below(self.world.version()?);
                self.go(Goal::Jump(version), None)
            }
            (34..39, Some(entry), _) => {
                let text = ["", "edited", "edited\n\nat length"][self.dice.index(3)].to_owned();
                self.change(Command::EditEntry { take, entry, text })
            }
            (39..43, Some(entry), _) => self.change(Command::DeleteEntries { take, entries: vec![entry] }),
            (43..45, Some(entry), _) => {
                let role = ["User", "AI", "Tool", "Reviewer"][self.dice.index(4)].to_owned();
                self.change(Command::ChangeRole { take, entry, role })
            }
            (45..47, Some(entry), _) => {
                let version =
                    EntryVersion::from_text("AI", "Put in by hand.", self.world.shop.timeline.now());
                let entries = vec![NewEntry::from(version)];
                self.change(Command::AddEntries { take, at: Spot::Before(entry), entries })
            }
            (47..50, ..) => self.compress(),
            (50..55, ..) => self.switch(),
            (55..58, ..) if self.takes > 2 => self.delete_take(),
            (58..61, ..) => self.by_hand(),
            _ => self.turn(&Way::Run),
        }
    }

    fn prompt(&self, text: &str) -> Prompt {
        self.world.beginning(text).prompt
    }

    /// A turn, with somebody who meddles in it now and then.
    fn turn(&mut self, way: &Way) -> Result<Said, Failed> {
        let wire = Wire::ALL[self.dice.index(4)];
        let noisy = self.dice.once_in(16);
        let disturbed = self.disturbance(way, noisy)?;
        let stops = disturbed.as_ref().is_some_and(|disturbed| disturbed.what == Disturbance::Stop);
        self.world.speak(wire, if stops { Duration::from_mins(1) } else { QUICK_ANSWER })?;
        self.world.assistant.begin(wire, self.dice.split(), noisy);
        let meddling = match self.dice.below(12) {
            _ if noisy && self.plan.mistake == Some(Mistake::StopWithoutEffect) => Meddling::ClaimStop,
            _ if noisy => Meddling::StopNoise,
            _ if disturbed.is_some() => Meddling::None,
            0 | 1 => Meddling::Interrupt,
            2 => Meddling::Steer,
            3 => Meddling::Undo,
            4 | 5 if self.takes + 1 < MOST_TAKES => Meddling::NewTake { fork: self.dice.once_in(2) },
            _ => Meddling::None,
        };
        let left = self.dice.below(14);
        let before = Folder::read(&self.world.project).map_err(Failed::trouble)?;
        let looking = self.world.shop.timeline.look().map_err(Failed::trouble)?;
        let state = looking.state(self.world.thread).map_err(Failed::trouble)?;
        drop(looking);
        let active = self.world.active()?;
        if let Some(disturbed) = &disturbed {
            disturbed.plan(&self.world, active.id, self.plan.mistake);
        }
        let (world, take, unfinished) = (&self.world, active.id, active.agent.is_some());
        let cancel = Cancel::new();
        let mut watcher = Watcher {
            world,
            take,
            cancel: cancel.clone(),
            meddling,
            left,
            ended: Vec::new(),
            undone: false,
            made: None,
            told: None,
        };
        let outcome = match way {
            Way::Run => {
                world.shop.run(world.thread, take, world.beginning("Do something."), &cancel, &mut watcher)
            }
            Way::Resume => world.shop.resume(world.thread, take, Resuming::default(), &cancel, &mut watcher),
            Way::Retry(at, prompt) => {
                let beginning = Beginning { prompt: prompt.clone(), ..world.beginning("") };
                {
                    let again = Again {
                        from: take,
                        at: *at,
                        name: None,
                        on_conflict: OnConflict::default(),
                        shared: SharedChanges::default(),
                    };
                    world.shop.retry(world.thread, again, beginning, &cancel, &mut watcher)
                }
            }
        };
        let (ended, undone, made) = (watcher.ended, watcher.undone, watcher.made);
        self.walked.turns += 1;
        if let Some(took) = watcher.told.map(|told| told.elapsed()) {
            self.walked.silenced += 1;
            if took > LONGEST_STOP {
                return wrong("a turn that was told to stop", format!("it went on for {took:?}"));
            }
        }
        self.world.shop.window = WINDOW;
        if let Some(problem) = self.disturbed(disturbed.as_ref())? {
            return wrong("a turn that compressed itself", problem);
        }
        let name = match way {
            Way::Run => "a turn",
            Way::Resume => "a turn that went on",
            Way::Retry(..) => "a retry",
        };
        if matches!(way, Way::Retry(..)) && !undone {
            self.takes += 1;
            self.walked.forks += 1;
        }
        if undone {
            if matches!(way, Way::Retry(..)) {
                // A redo leads there again.
                self.takes += 1;
                self.note()?;
            }
            self.settle()?;
        }
        match made {
            Some(Ok(version)) => {
                self.note_until(version - 1);
                self.takes += 1;
                self.walked.beside += 1;
            }
            Some(Err(problem)) => return wrong("a take that is made while a turn runs", problem),
            None => {}
        }
        let said = self.judge(way, name, outcome, undone, &before, &ended)?;
        // What closed a turn that was left is a part of that one, and stays.
        if matches!(way, Way::Run) && !unfinished && !undone {
            self.last = Some((state, before));
        }
        Ok(said)
    }

    /// Now and then the window is too small for the turn, and something is done while it compresses itself.
    fn disturbance(&mut self, way: &Way, noisy: bool) -> Result<Option<Disturbed>, Failed> {
        let often = matches!(self.plan.mistake, Some(Mistake::SummaryNotStopped | Mistake::ChangeLost));
        if noisy || matches!(way, Way::Retry(..)) || !self.dice.once_in(if often { 2 } else { 9 }) {
            return Ok(None);
        }
        let Some(window) = self.world.tight_window()? else { return Ok(None) };
        self.world.shop.window = window;
        Ok(Some(Disturbed::roll(&mut self.dice, self.plan.mistake, self.walked.steps)))
    }

    /// What is wrong with what came of a disturbance, if anything is.
    fn disturbed(&mut self, disturbed: Option<&Disturbed>) -> Result<Option<String>, Failed> {
        let Some((disturbed, done)) =
            disturbed.and_then(|disturbed| disturbed.done().map(|done| (disturbed, done)))
        else {
            return Ok(None);
        };
        if disturbed.what == Disturbance::Stop {
            self.walked.summaries_stopped += 1;
            let took = done.elapsed();
            return Ok((took > LONGEST_STOP).then(|| format!("it was told to stop and went on for {took:?}")));
        }
        self.walked.summaries_disturbed += 1;
        let is_there = disturbed.is_there(&self.world)?;
        Ok((!is_there).then(|| format!("{:?} is lost", disturbed.what)))
    }

    fn judge(
        &mut self,
        way: &Way,
        name: &str,
        outcome: Result<Outcome, TurnError>,
        undone: bool,
        before: &Folder,
        ended: &[(String, retake_model::agent::ToolOutcome)],
    ) -> Result<Said, Failed> {
        use retake_model::agent::Ended;
        match outcome {
            Ok(outcome) => match outcome.how {
                Ended::Completed => self.walked.completed += 1,
                Ended::Interrupted => self.walked.stopped += 1,
                Ended::Failed => self.walked.failed += 1,
            },
            Err(TurnError::Gone) if undone => self.walked.stopped += 1,
            // A message that the turn began from was edited until nothing was left of it.
            Err(TurnError::Change(ChangeError::Refused(Refusal::EmptyPrompt)))
                if matches!(way, Way::Retry(..)) =>
            {
                self.takes -= 1;
                self.walked.forks -= 1;
            }
            Err(error) => return wrong(name, error),
        }
        if undone {
            return fine(&format!("{name} that was undone while it ran"));
        }
        // A retry begins with other files than those that were there.
        if !matches!(way, Way::Retry(..)) {
            let expected = Files::of(before).after(ended, &self.world.assistant);
            let there = Folder::read(&self.world.project).map_err(Failed::trouble)?;
            if let Err(problem) = compare(&expected, &there) {
                return wrong(name, problem);
            }
        }
        fine(name)
    }

    /// A turn was undone while it ran: how far that went, and whether a tool was at it, is not known beforehand.
    fn settle(&mut self) -> Result<(), Failed> {
        self.world.desk.look(self.world.thread, Caller::human()).map_err(Failed::trouble)?;
        let looking = self.world.shop.timeline.look().map_err(Failed::trouble)?;
        let position = looking.standing(self.world.thread).map_err(Failed::trouble)?.position;
        self.takes = self.known.get(&position).copied().unwrap_or(self.takes);
        Ok(())
    }

    /// A retry that cannot begin, for one of several reasons, must leave nothing at all.
    fn retry_in_vain(&mut self, take: TakeId, at: EntryId) -> Result<Said, Failed> {
        let before = self.world.version()?;
        let mut beginning = self.world.beginning("Again.");
        let mut name = None;
        match self.dice.below(4) {
            0 => beginning.prompt = self.prompt(" \n"),
            1 => beginning.expected = Some(before + 7),
            2 => name = Some(self.world.active()?.name),
            _ => self.world.speak_to_nobody(),
        }
        let world = &self.world;
        let mut watcher = Watcher {
            world,
            take,
            cancel: Cancel::new(),
            meddling: Meddling::None,
            left: 0,
            ended: Vec::new(),
            undone: false,
            made: None,
            told: None,
        };
        let again = Again {
            from: take,
            at,
            name,
            on_conflict: OnConflict::default(),
            shared: SharedChanges::default(),
        };
        let refused = world.shop.retry(world.thread, again, beginning, &Cancel::new(), &mut watcher);
        self.walked.refused += 1;
        match refused {
            Ok(_) => wrong("a retry in vain", "it began"),
            Err(_) if self.world.version()? != before => wrong("a retry in vain", "it left something behind"),
            Err(_) => fine("a retry in vain"),
        }
    }

    fn go(&mut self, goal: Goal, last: Option<(ThreadState, Folder)>) -> Result<Said, Failed> {
        let name = format!("{goal:?}");
        let gone = self.world.desk.go(self.world.thread, goal, Caller::human(), Handling::default());
        let moved = match gone {
            Ok(Moment { moved: Some(moved), .. }) => moved,
            Ok(_) | Err(FileError::Change(ChangeError::NothingToUndo | ChangeError::NothingToRedo)) => {
                return fine(&format!("{name} to nowhere"));
            }
            Err(error) => return wrong(&name, error),
        };
        self.walked.moves += 1;
        match self.known.get(&moved.position) {
            Some(takes) => self.takes = *takes,
            None => return wrong(&name, format!("it went to {}, which was never there", moved.position)),
        }
        if let (Some((state, files)), Goal::Undo(_, 1)) = (last, goal) {
            let looking = self.world.shop.timeline.look().map_err(Failed::trouble)?;
            if looking.state(self.world.thread).map_err(Failed::trouble)? != state {
                return wrong(&name, "the conversation is not as it was before the turn");
            }
            let there = Folder::read(&self.world.project).map_err(Failed::trouble)?;
            if let Some(found) = there.differences(&files).first() {
                return wrong(&name, format!("the turn's files did not go back: {found:?}"));
            }
        }
        fine(&name)
    }

    fn change(&mut self, command: Command) -> Result<Said, Failed> {
        let name = format!("{command:?}").chars().take(40).collect::<String>();
        match self.world.shop.timeline.change(self.world.thread, command, Caller::human()) {
            Ok(_) => fine(&name),
            Err(error) => wrong(&name, error),
        }
    }

    fn compress(&mut self) -> Result<Said, Failed> {
        let wire = Wire::ALL[self.dice.index(4)];
        self.world.speak(wire, QUICK_ANSWER)?;
        self.world.assistant.begin(wire, self.dice.split(), false);
        let take = self.world.active()?.id;
        if self.dice.once_in(2) {
            let draft = Disturbance::Draft(format!("a draft of step {}", self.walked.steps));
            Disturbed::new(draft).plan(&self.world, take, None);
        }
        let keep = Keep::Entries(self.dice.below(20));
        match self.world.shop.compress(self.world.thread, take, keep, Knowing::default(), &Cancel::new()) {
            Ok(_)
            | Err(
                CompressError::Model(_)
                | CompressError::Turn(TurnError::Change(ChangeError::Refused(
                    Refusal::NothingToCompress | Refusal::EmptySummary,
                ))),
            ) => fine("a compression"),
            Err(error) => wrong("a compression", error),
        }
    }

    fn switch(&mut self) -> Result<Said, Failed> {
        let takes = self.world.takes()?;
        let Some(take) = self.dice.pick(&takes).map(|take| take.id) else { return fine("no switch") };
        match self.world.desk.change(
            self.world.thread,
            Command::Switch { take },
            Caller::human(),
            Handling::default(),
        ) {
            Ok(_) => fine("a switch"),
            Err(error) => wrong("a switch", error),
        }
    }

    fn delete_take(&mut self) -> Result<Said, Failed> {
        let takes = self.world.takes()?;
        let Some(take) = self.dice.pick(&takes).map(|take| take.id) else { return fine("no deletion") };
        let delete = Command::DeleteTake { take };
        match self.world.desk.change(self.world.thread, delete, Caller::human(), Handling::default()) {
            Ok(_) => {
                self.takes -= 1;
                fine("a deletion of a take")
            }
            Err(error) => wrong("a deletion of a take", error),
        }
    }

    /// Somebody works in the folder, on a file of their own.
    fn by_hand(&mut self) -> Result<Said, Failed> {
        let path = self.world.project.join(format!("hand-{}.txt", self.dice.below(3)));
        std::fs::write(path, format!("by hand {}\n", self.walked.steps)).map_err(Failed::trouble)?;
        self.world.desk.look(self.world.thread, Caller::human()).map_err(Failed::trouble)?;
        fine("work by hand")
    }

    /// Makes the mistake, if it is one to be made here. It is made once.
    fn make(&mut self, mistake: Mistake) -> Result<bool, Failed> {
        let (thread, take) = (self.world.thread, self.world.active()?);
        let timeline = &self.world.shop.timeline;
        match mistake {
            Mistake::ResultWithoutFiles => {
                std::fs::write(self.world.project.join("a.txt"), "written\n").map_err(Failed::trouble)?;
                let version = EntryVersion::from_text("Tool", "Wrote a.txt.", timeline.now());
                let entries = vec![NewEntry::from(version)];
                let add = Command::AddEntries { take: take.id, at: Spot::End, entries };
                timeline.change(thread, add, Caller::human()).map_err(Failed::trouble)?;
            }
            Mistake::OrphanFork => {
                let branch = Command::Branch { from: take.id, at: None, name: None };
                self.world
                    .desk
                    .change(thread, branch, Caller::human(), Handling::default())
                    .map_err(Failed::trouble)?;
            }
            // The assistant makes it, in every request.
            Mistake::CallWithoutResult => return Ok(false),
            // Those who meddle make it.
            Mistake::StopWithoutEffect | Mistake::SummaryNotStopped | Mistake::ChangeLost => {
                return Ok(false);
            }
        }
        self.plan.mistake = None;
        Ok(true)
    }
}
