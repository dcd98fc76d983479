//! The campaign: random steps, with a complete check after each.

mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use retake_agent::{
    Cancel, CompressError, CompressOptions, KeepRecent, ResumeRequest, RetryRequest, TurnError, TurnOutcome,
    TurnRequest,
};
use retake_model::agent::{AgentState, TurnEnd};
use retake_model::command::{CommandError, Prompt};
use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, TakeId};
use retake_model::projection::Wire;
use retake_model::replay::OnConflict;
use retake_model::state::ThreadState;
use retake_timeline::{
    Caller, ChangeError, Command, FileError, Goal, InsertPosition, MoveOptions, MoveOutcome, NewEntry,
    SharedChanges, Unit,
};

use super::check::{CheckedTakes, everything, verified};
use super::summaries::{Interference, PlannedInterference};
use super::tools::{Files, compare};
use super::world::{InterferingObserver, Interruption, QUICK_ANSWER, WINDOW, World};
use super::{DriverFault, TurnsPlan};
use crate::folder::Folder;
use crate::rng::Rng;
use crate::violation::{CampaignError, Violation};

/// Maximum number of takes: each is checked whenever it changes.
const MAX_TAKES: u64 = 6;
/// Longer conversations are compressed.
const MAX_ENTRIES: usize = 120;

/// How long a turn may take to stop: 200 ms for the tool, then a snapshot and a sync on a busy machine. The noisy tool
/// runs much longer.
const MAX_STOP_TIME: Duration = Duration::from_secs(6);

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnsSummary {
    /// All steps.
    pub steps: u64,
    /// Turns that were started or resumed.
    pub turns: u64,
    /// Turns that completed.
    pub completed: u64,
    /// Turns that were stopped, or undone while they ran.
    pub stopped: u64,
    /// Turns left to be resumed because the process had to exit.
    pub shut_down: u64,
    /// Of the stopped ones, turns stopped while a tool printed continuously.
    pub stopped_while_printing: u64,
    /// Turns stopped while they compressed themselves.
    pub summaries_stopped: u64,
    /// Drafts and titles set while a turn compressed itself.
    pub summaries_disturbed: u64,
    /// Turns that failed and could be resumed.
    pub failed: u64,
    /// Takes created by retries.
    pub forks: u64,
    /// Takes created from one in which a turn was running.
    pub beside: u64,
    /// Retries that could not start.
    pub refused: u64,
    /// Undos, redos and jumps.
    pub moves: u64,
    /// Requests to the server.
    pub requests: u64,
    /// Requests with a failing answer.
    pub failures: u64,
    /// Requested tool calls.
    pub calls: u64,
    /// Projections of whole takes that were checked.
    pub projections: u64,
}

impl TurnsSummary {
    /// Events that were too rare to prove anything.
    pub fn missing(&self) -> Vec<&'static str> {
        let summaries = self.summaries_disturbed + self.summaries_stopped;
        let wanted = [
            ("turns that completed", self.completed, 11),
            ("forks", self.forks, 3),
            ("takes made beside a turn", self.beside, 1),
            ("moves", self.moves, 6),
            ("shutdowns", self.shut_down, 1),
            ("stops while a tool printed", self.stopped_while_printing, 1),
            ("summaries that were disturbed", summaries, 2),
        ];
        wanted.into_iter().filter(|(_, found, least)| found < least).map(|(what, ..)| what).collect()
    }
}

/// The planned number of turns is exceeded at most this many times, until all required events occurred.
const MAX_ROUNDS: u64 = 10;

/// Runs until the planned number of turns, and on until every kind of event occurred often enough. Which events occur
/// depends on timing as well as on the seed (a busy machine makes answers late), so the number of turns alone proves
/// little. A fault that is still to be injected is waited for in the same way.
pub fn walk(plan: TurnsPlan) -> Result<TurnsSummary, CampaignError> {
    let mut walk = TurnCampaign {
        world: World::new(plan)?,
        rng: Rng::new(plan.seed),
        plan,
        counts: TurnsSummary::default(),
        checked: CheckedTakes::default(),
        takes: 1,
        known: BTreeMap::new(),
        last: None,
    };
    walk.note()?;
    while walk.goes_on() {
        walk.counts.steps += 1;
        let result = walk.step()?;
        let step = walk.counts.steps;
        let broken = |what: String| {
            CampaignError::Violation(Violation {
                campaign: "turns",
                seed: plan.seed,
                step,
                what: format!("{} {what}", result.0),
            })
        };
        result.1.map_err(broken)?;
        everything(&walk.world, &mut walk.checked, walk.takes).map_err(broken)?;
        walk.note()?;
    }
    verified(&walk.world).map_err(|what| Violation {
        campaign: "turns",
        seed: plan.seed,
        step: walk.counts.steps,
        what,
    })?;
    let mut counts = walk.counts;
    walk.world.assistant.with(|mind| {
        (counts.requests, counts.failures, counts.calls) = (mind.requests, mind.failures, mind.calls);
    });
    Ok(TurnsSummary { projections: walk.checked.projections, ..counts })
}

/// The description of a step, and its immediate error.
type StepReport = (String, Result<(), String>);

#[expect(clippy::unnecessary_wraps, reason = "a step ends with it")]
fn fine(what: &str) -> Result<StepReport, CampaignError> {
    Ok((format!("after {what}:"), Ok(())))
}

#[expect(clippy::unnecessary_wraps, reason = "a step ends with it")]
fn wrong(what: &str, problem: impl std::fmt::Display) -> Result<StepReport, CampaignError> {
    Ok((format!("{what}:"), Err(problem.to_string())))
}

struct TurnCampaign {
    world: World,
    rng: Rng,
    plan: TurnsPlan,
    counts: TurnsSummary,
    checked: CheckedTakes,
    /// Expected number of takes.
    takes: u64,
    /// Expected number of takes at each version.
    known: BTreeMap<u64, u64>,
    /// Conversation and files before the last turn, if nothing happened since.
    last: Option<(ThreadState, Folder)>,
}

enum TurnStart {
    Run,
    Retry(EntryId, Prompt),
    Resume,
}

impl TurnCampaign {
    fn goes_on(&self) -> bool {
        let (turns, least) = (self.counts.turns, self.plan.turns);
        let is_enough = self.plan.mistake.is_none() && self.counts.missing().is_empty();
        turns < least || (!is_enough && turns < least * MAX_ROUNDS)
    }

    fn note(&mut self) -> Result<(), CampaignError> {
        self.note_until(self.world.version()?);
        Ok(())
    }

    fn note_until(&mut self, last: u64) {
        let first = self.known.last_key_value().map_or(1, |(version, _)| version + 1);
        for version in first..=last {
            self.known.insert(version, self.takes);
        }
    }

    fn step(&mut self) -> Result<StepReport, CampaignError> {
        let last = self.last.take();
        if let Some(mistake) = self.plan.mistake
            && self.counts.turns > 5
            && self.make(mistake)?
        {
            return fine("a mistake");
        }
        let entries = self.world.entries()?;
        let unfinished = self.world.active()?.agent.is_some();
        if unfinished && self.rng.once_in(2) {
            return self.turn(&TurnStart::Resume);
        }
        if entries.len() > MAX_ENTRIES {
            return self.compress();
        }
        let asked: Vec<EntryId> = entries
            .iter()
            .filter(|view| RoleKind::of(&view.entry.role) == RoleKind::User)
            .map(|view| view.id)
            .collect();
        let any = self.rng.pick(&entries).map(|view| view.id);
        let message = self.rng.pick(&asked).copied();
        let take = self.world.active()?.id;
        match (self.rng.below(100), any, message) {
            (0..12, _, Some(at)) if self.takes < MAX_TAKES => {
                let prompt =
                    if self.rng.once_in(2) { Prompt::Original } else { self.prompt("Try it otherwise.") };
                self.turn(&TurnStart::Retry(at, prompt))
            }
            (12..17, _, Some(at)) => self.retry_in_vain(take, at),
            (17..25, ..) => {
                let turns = 1 + self.rng.below(3) / 2;
                self.go(Goal::Undo(Unit::Turn, turns), last)
            }
            (25..30, ..) => self.go(Goal::Redo(Unit::Turn, 1), None),
            (30..34, ..) => {
                let version = 1 + self.rng.below(self.world.version()?);
                self.go(Goal::Jump(version), None)
            }
            (34..39, Some(entry), _) => {
                let text = ["", "edited", "edited\n\nat length"][self.rng.index(3)].to_owned();
                self.change(Command::EditEntry { take, entry, text })
            }
            (39..43, Some(entry), _) => self.change(Command::DeleteEntries { take, entries: vec![entry] }),
            (43..45, Some(entry), _) => {
                let role = ["User", "AI", "Tool", "Reviewer"][self.rng.index(4)].to_owned();
                self.change(Command::ChangeRole { take, entry, role })
            }
            (45..47, Some(entry), _) => {
                let version =
                    EntryVersion::from_text("AI", "Put in by hand.", self.world.runtime.timeline.now());
                let entries = vec![NewEntry::from(version)];
                self.change(Command::AddEntries { take, at: InsertPosition::Before(entry), entries })
            }
            (47..50, ..) => self.compress(),
            (50..55, ..) => self.switch(),
            (55..58, ..) if self.takes > 2 => self.delete_take(),
            (58..61, ..) => self.by_hand(),
            _ => self.turn(&TurnStart::Run),
        }
    }

    fn prompt(&self, text: &str) -> Prompt {
        self.world.beginning(text).prompt
    }

    /// A turn, sometimes with interference.
    fn turn(&mut self, way: &TurnStart) -> Result<StepReport, CampaignError> {
        let wire = Wire::ALL[self.rng.index(4)];
        let noisy = self.rng.once_in(16);
        let disturbed = self.disturbance(way, noisy)?;
        let stops = disturbed.as_ref().is_some_and(|disturbed| disturbed.what == Interference::Stop);
        self.world.use_wire(wire, if stops { Duration::from_mins(1) } else { QUICK_ANSWER })?;
        self.world.assistant.begin(wire, self.rng.split(), noisy);
        let interruption = match self.rng.below(12) {
            _ if noisy && self.plan.mistake == Some(DriverFault::StopWithoutEffect) => {
                Interruption::ClaimStop
            }
            _ if noisy => Interruption::StopNoise,
            _ if disturbed.is_some() => Interruption::None,
            0 => Interruption::Interrupt,
            1 => Interruption::ShutDown,
            2 => Interruption::Steer,
            3 => Interruption::Undo,
            4 | 5 if self.takes + 1 < MAX_TAKES => Interruption::NewTake { fork: self.rng.once_in(2) },
            _ => Interruption::None,
        };
        let left = self.rng.below(14);
        let before = Folder::read(&self.world.project).map_err(CampaignError::trouble)?;
        let reader = self.world.runtime.timeline.read().map_err(CampaignError::trouble)?;
        let state = reader.state(self.world.thread).map_err(CampaignError::trouble)?;
        drop(reader);
        let active = self.world.active()?;
        if let Some(disturbed) = &disturbed {
            disturbed.plan(&self.world, active.id, self.plan.mistake);
        }
        let (world, take, unfinished) = (&self.world, active.id, active.agent.is_some());
        let cancel = Cancel::new();
        let mut watcher = InterferingObserver {
            world,
            take,
            cancel: cancel.clone(),
            interruption,
            left,
            ended: Vec::new(),
            undone: false,
            made: None,
            stop_requested: None,
        };
        let outcome = match way {
            TurnStart::Run => {
                world.runtime.run(world.thread, take, world.beginning("Do something."), &cancel, &mut watcher)
            }
            TurnStart::Resume => {
                world.runtime.resume(world.thread, take, ResumeRequest::default(), &cancel, &mut watcher)
            }
            TurnStart::Retry(at, prompt) => {
                let beginning = TurnRequest { prompt: prompt.clone(), ..world.beginning("") };
                let (on_conflict, shared) = (OnConflict::default(), SharedChanges::default());
                let again = RetryRequest { from: take, at: *at, name: None, on_conflict, shared };
                world.runtime.retry(world.thread, again, beginning, &cancel, &mut watcher)
            }
        };
        let (ended, undone, made) = (watcher.ended, watcher.undone, watcher.made);
        self.counts.turns += 1;
        if let Some(took) = watcher.stop_requested.map(|stop_requested| stop_requested.elapsed()) {
            self.counts.stopped_while_printing += 1;
            if took > MAX_STOP_TIME {
                return wrong("a turn that was stopped", format!("it ran for another {took:?}"));
            }
        }
        self.world.runtime.window = WINDOW;
        if let Some(problem) = self.disturbed(disturbed.as_ref())? {
            return wrong("a turn that compressed itself", problem);
        }
        let name = match way {
            TurnStart::Run => "a turn",
            TurnStart::Resume => "a turn that went on",
            TurnStart::Retry(..) => "a retry",
        };
        if matches!(way, TurnStart::Retry(..)) && !undone {
            self.takes += 1;
            self.counts.forks += 1;
        }
        if undone {
            if matches!(way, TurnStart::Retry(..)) {
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
                self.counts.beside += 1;
            }
            Some(Err(problem)) => return wrong("a take created during a turn", problem),
            None => {}
        }
        let result = self.judge(way, name, outcome, undone, &before, &ended)?;
        // Operations that close an older turn belong to that turn, and stay.
        if matches!(way, TurnStart::Run) && !unfinished && !undone {
            self.last = Some((state, before));
        }
        Ok(result)
    }

    /// Sometimes makes the context window too small, and schedules an action during the compression.
    fn disturbance(
        &mut self,
        way: &TurnStart,
        noisy: bool,
    ) -> Result<Option<PlannedInterference>, CampaignError> {
        let often =
            matches!(self.plan.mistake, Some(DriverFault::SummaryNotStopped | DriverFault::ChangeLost));
        if noisy || matches!(way, TurnStart::Retry(..)) || !self.rng.once_in(if often { 2 } else { 9 }) {
            return Ok(None);
        }
        let Some(window) = self.world.tight_window()? else { return Ok(None) };
        self.world.runtime.window = window;
        Ok(Some(PlannedInterference::sample(&mut self.rng, self.plan.mistake, self.counts.steps)))
    }

    /// Checks the result of that action.
    fn disturbed(
        &mut self,
        disturbed: Option<&PlannedInterference>,
    ) -> Result<Option<String>, CampaignError> {
        let Some((disturbed, done)) =
            disturbed.and_then(|disturbed| disturbed.done().map(|done| (disturbed, done)))
        else {
            return Ok(None);
        };
        if disturbed.what == Interference::Stop {
            self.counts.summaries_stopped += 1;
            let took = done.elapsed();
            return Ok(
                (took > MAX_STOP_TIME).then(|| format!("it was stopped, and ran for another {took:?}"))
            );
        }
        self.counts.summaries_disturbed += 1;
        let is_there = disturbed.is_there(&self.world)?;
        Ok((!is_there).then(|| format!("{:?} is lost", disturbed.what)))
    }

    fn judge(
        &mut self,
        way: &TurnStart,
        name: &str,
        outcome: Result<TurnOutcome, TurnError>,
        undone: bool,
        before: &Folder,
        ended: &[(String, retake_model::agent::ToolOutcome)],
    ) -> Result<StepReport, CampaignError> {
        match outcome {
            Ok(outcome) => match outcome.how {
                TurnEnd::Completed => self.counts.completed += 1,
                TurnEnd::Interrupted => self.counts.stopped += 1,
                TurnEnd::ShutDown => {
                    self.counts.shut_down += 1;
                    let agent = self.world.active()?.agent.map(|agent| agent.state);
                    if agent != Some(AgentState::ShuttingDown { unfinished: true }) {
                        return wrong(name, format!("it cannot be resumed after a shutdown: {agent:?}"));
                    }
                }
                TurnEnd::Failed => self.counts.failed += 1,
            },
            Err(TurnError::Gone) if undone => self.counts.stopped += 1,
            // The turn's message was edited until it was empty.
            Err(TurnError::Change(ChangeError::Refused(CommandError::EmptyPrompt)))
                if matches!(way, TurnStart::Retry(..)) =>
            {
                self.takes -= 1;
                self.counts.forks -= 1;
            }
            Err(error) => return wrong(name, error),
        }
        if undone {
            return fine(&format!("{name} that was undone while it ran"));
        }
        // A retry starts with other files than those in the folder.
        if !matches!(way, TurnStart::Retry(..)) {
            let expected = Files::of(before).after(ended, &self.world.assistant);
            let there = Folder::read(&self.world.project).map_err(CampaignError::trouble)?;
            if let Err(problem) = compare(&expected, &there) {
                return wrong(name, problem);
            }
        }
        fine(name)
    }

    /// A turn was undone while it ran; how far it got is not predictable.
    fn settle(&mut self) -> Result<(), CampaignError> {
        self.world
            .working_copy
            .record_changes(self.world.thread, Caller::human())
            .map_err(CampaignError::trouble)?;
        let reader = self.world.runtime.timeline.read().map_err(CampaignError::trouble)?;
        let position =
            reader.history(self.world.thread).undo_status().map_err(CampaignError::trouble)?.position;
        self.takes = self.known.get(&position).copied().unwrap_or(self.takes);
        Ok(())
    }
}
