//! The campaign: random steps in the real folder and in the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{
    Caller, Command, Desk, Goal, Halves, Handling, NewThread, Rules, Seeded, Timeline, Unit,
};
use retake_workspace::snapshot::Workspace;

use crate::dice::Dice;
use crate::folder::{Folder, Thing};
use crate::ground::Ground;
use crate::violation::{Failed, Trouble, Violation, caught};

use super::naive::{Mistake, Naive};
use super::work::{beginning, edit, revert, write};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct EditsPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of steps.
    pub steps: u64,
    /// The injected fault.
    pub mistake: Option<Mistake>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Number of steps.
    pub steps: u64,
    /// Steps that moved along the log, restored or switched.
    pub moves: u64,
    /// Takes that were created at an entry, or promoted.
    pub splits: u64,
    /// Paths that were merged or in conflict.
    pub merged: u64,
}

/// A project is replaced after this many steps, because its logs grow.
const LEG: u64 = 150;

/// Runs the campaign.
pub fn walk(plan: EditsPlan) -> Result<Walked, Failed> {
    let mut dice = Dice::new(plan.seed);
    let mut walked = Walked::default();
    while walked.steps < plan.steps {
        let leg = dice.split();
        let mut leg = Leg::begin(leg, plan.mistake)?;
        for _ in 0..LEG.min(plan.steps - walked.steps) {
            walked.steps += 1;
            let what = leg.step(&mut walked)?;
            leg.compare().map_err(|broken| {
                let what = format!("{what}: {broken}");
                Failed::Violation(Violation { campaign: "edits", seed: plan.seed, step: walked.steps, what })
            })?;
        }
    }
    Ok(walked)
}

/// The controls: each fault of the model must be noticed. Returns their number.
pub fn controls(seed: u64) -> Result<usize, Trouble> {
    for mistake in Mistake::ALL {
        let plan = EditsPlan { seed, steps: 20_000, mistake: Some(mistake) };
        caught(&format!("{mistake:?}"), walk(plan))?;
    }
    Ok(Mistake::ALL.len())
}

pub(super) struct Leg {
    ground: Ground,
    pub(super) desk: Desk,
    pub(super) threads: Vec<ThreadId>,
    /// The takes of each thread, in order of creation.
    pub(super) takes: Vec<Vec<TakeId>>,
    pub(super) model: Naive,
    pub(super) dice: Dice,
    /// A rule that was broken within a step.
    broken: Option<String>,
}

impl Leg {
    fn begin(mut dice: Dice, mistake: Option<Mistake>) -> Result<Self, Trouble> {
        let ground = Ground::for_files()?;
        let (store, folder) = (ground.path().join("home"), ground.path().join("project"));
        std::fs::create_dir_all(&folder)?;
        let files = beginning();
        write(&folder, &Folder::default(), &files)?;
        let project = ProjectId::from_bytes([7; 16]);
        let timeline = Timeline::open_with(&store, Rules::default(), Arc::new(Seeded::new(dice.roll())))?;
        let mut threads = Vec::new();
        for _ in 0..2 {
            threads.push(timeline.create_thread(NewThread::in_project(project), Caller::human())?.thread);
        }
        let takes = {
            let looking = timeline.look()?;
            threads.iter().map(|id| Ok(vec![looking.state(*id)?.active])).collect::<Result<_, Trouble>>()?
        };
        let desk = Desk::at(timeline, project, Workspace::of(&folder)?);
        desk.look(threads[0], Caller::human())?;
        let model = Naive::new(threads.len(), files, mistake);
        Ok(Self { ground, desk, threads, takes, model, dice, broken: None })
    }

    fn folder(&self) -> PathBuf {
        self.ground.path().join("project")
    }

    /// Every path must match the model, and every log must have the same length.
    fn compare(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        for (id, thread) in self.threads.iter().zip(&self.model.threads) {
            let looking = self.desk.timeline().look().map_err(|error| error.to_string())?;
            let version = looking.head(*id).map_err(|error| error.to_string())?.operation.version;
            if version != thread.version() as u64 {
                return Err(format!("the log ends with {version} and should with {}", thread.version()));
            }
        }
        let found = Folder::read(&self.folder()).map_err(|error| error.to_string())?;
        match found.differences(&self.model.present).first() {
            None => Ok(()),
            Some(difference) => {
                let outline = self.model.outline(difference.path);
                Err(format!("found (left) and expected (right): {difference:?}{outline}"))
            }
        }
    }

    /// A few edits by one author.
    fn work(&mut self) -> Result<(), Trouble> {
        let before = self.model.present.clone();
        for _ in 0..=self.dice.below(4) {
            edit(&mut self.model.present, &mut self.dice);
        }
        write(&self.folder(), &before, &self.model.present)
    }

    /// The user restores old content of some paths, or deletes them.
    fn revert(&mut self) -> Result<(), Trouble> {
        let before = self.model.present.clone();
        let at = self.dice.index(self.threads.len());
        let past = self.model.threads[at].some_past(&mut self.dice);
        for _ in 0..=self.dice.below(3) {
            let other = if self.dice.once_in(3) { None } else { past.as_deref() };
            revert(&mut self.model.present, other, &mut self.dice);
        }
        write(&self.folder(), &before, &self.model.present)
    }

    /// Undo, sometimes reverts by the user, then redo. Independently of the model, a redo must restore what the undo
    /// changed and leave alone what the undo left alone.
    fn there_and_back(&mut self, at: usize) -> Result<String, Trouble> {
        let id = self.threads[at];
        let Some(to) = self.model.threads[at].undo() else { return Ok("nothing to undo".to_owned()) };
        let found = self.model.present.clone();
        self.desk.go(id, Goal::Undo(Unit::Turn, 1), Caller::human(), Handling::default())?;
        self.model.go(at, to);
        let undone = Folder::read(&self.folder())?;
        if self.dice.once_in(2) {
            self.revert()?;
        }
        let Some(to) = self.model.threads[at].redo() else { return Ok("nothing to redo".to_owned()) };
        let before = self.model.present.clone();
        self.desk.go(id, Goal::Redo(Unit::Turn, 1), Caller::human(), Handling::default())?;
        self.model.go(at, to);
        let redone = Folder::read(&self.folder())?;
        let folder = |thing: Option<&Thing>| matches!(thing, Some(Thing::Folder(_)));
        for difference in redone.differences(&before) {
            let path = difference.path;
            let left_alone = found.0.get(path) == undone.0.get(path);
            let files = !folder(difference.left) && !folder(difference.right);
            if left_alone && files {
                self.broken = Some(format!("redo changed {}, which undo left alone", path.display()));
            }
        }
        if undone == before && redone != found {
            self.broken = Some("undo and redo is not the identity".to_owned());
        }
        Ok(format!("undo and redo in thread {at}"))
    }

    /// Two steps back at once, then forward one by one: nothing may differ.
    fn far_and_back(&mut self, at: usize) -> Result<String, Trouble> {
        let id = self.threads[at];
        let thread = &self.model.threads[at];
        let Some(to) = thread.undo().and_then(|near| thread.undo_from(near)) else {
            return Ok("nothing to undo twice".to_owned());
        };
        let found = self.model.present.clone();
        self.desk.go(id, Goal::Undo(Unit::Turn, 2), Caller::human(), Handling::default())?;
        self.model.go(at, to);
        for _ in 0..2 {
            let to = self.model.threads[at].redo().ok_or("two steps lie ahead")?;
            self.desk.go(id, Goal::Redo(Unit::Turn, 1), Caller::human(), Handling::default())?;
            self.model.go(at, to);
        }
        if Folder::read(&self.folder())? != found {
            self.broken = Some("an undo of two steps and two redos are not the identity".to_owned());
        }
        Ok(format!("two steps back and forth in thread {at}"))
    }

    /// One step; returns its description.
    fn step(&mut self, walked: &mut Walked) -> Result<String, Trouble> {
        let at = self.dice.index(self.threads.len());
        let id = self.threads[at];
        let roll = self.dice.below(26);
        if roll < 6 {
            self.desk.look(id, Caller::human())?;
            self.model.look(at);
            self.work()?;
            self.desk.record(id, Caller { actor: Actor::Agent, ..Caller::human() })?;
            self.model.record(at);
            return Ok(format!("the agent of thread {at} works"));
        }
        if roll < 9 {
            if self.dice.once_in(3) {
                self.revert()?;
                return Ok("a human reverts files".to_owned());
            }
            self.work()?;
            return Ok("a human works".to_owned());
        }
        if self.dice.once_in(6) {
            walked.moves += 2;
            return if self.dice.once_in(3) { self.far_and_back(at) } else { self.there_and_back(at) };
        }
        if roll >= 20 {
            return match roll {
                20..=22 => self.say(at),
                25 if self.dice.once_in(3) => self.promote(at, walked),
                _ => self.split(at, walked),
            };
        }
        walked.moves += 1;
        let thread = &self.model.threads[at];
        let goal = match roll {
            9..=12 => thread.undo().map(|to| (Goal::Undo(Unit::Turn, 1), to)),
            13..=15 => thread.redo().map(|to| (Goal::Redo(Unit::Turn, 1), to)),
            16 => {
                let version = 1 + self.dice.index(thread.version());
                if thread.is_within_turn(version) {
                    return Ok("the middle of a turn".to_owned());
                }
                Some((Goal::Jump(version as u64), thread.jump(version)))
            }
            17 => return self.restore(at),
            18 if thread.takes < 6 => return self.branch(at),
            _ => return self.switch(at),
        };
        let Some((goal, to)) = goal else { return Ok("nothing to do".to_owned()) };
        // Undoing the promotion would archive a promoted thread without further changes.
        if to == 1 && self.model.threads[at].is_promoted {
            return Ok("a promoted thread is still worked on".to_owned());
        }
        if !matches!(goal, Goal::Jump(_)) && self.dice.once_in(6) {
            let alone = Handling { halves: Halves::Conversation, ..Handling::default() };
            self.desk.go(id, goal, Caller::human(), alone)?;
            self.model.go_alone(at, to);
            return Ok(format!("{goal:?} of the conversation alone in thread {at}"));
        }
        let moment = self.desk.go(id, goal, Caller::human(), Handling::default())?;
        let report = moment.files.as_ref();
        let count = report.map_or(0, |files| {
            files.count(|outcome| {
                matches!(
                    outcome,
                    retake_timeline::Outcome::Merged | retake_timeline::Outcome::Conflicted { .. }
                )
            })
        });
        walked.merged += count as u64;
        match goal {
            Goal::Jump(version) => self.model.jump(at, version as usize),
            _ => self.model.go(at, to),
        }
        Ok(format!("{goal:?} in thread {at}"))
    }

    fn restore(&mut self, at: usize) -> Result<String, Trouble> {
        let version = 1 + self.dice.index(self.model.threads[at].version());
        let Some(wanted) = self.model.threads[at].files_at(version) else {
            return Ok("no files yet".to_owned());
        };
        let found = self.desk.timeline().look()?.files_at(self.threads[at], version as u64)?;
        let snapshot = found.ok_or("the working copy has no files for this version")?.files.after;
        let paths: Vec<&PathBuf> = wanted.0.keys().collect();
        let only =
            if self.dice.once_in(2) { self.dice.pick(&paths).map(|path| (*path).clone()) } else { None };
        let names = only.iter().map(|path| root_path(path)).collect::<Result<Vec<_>, _>>()?;
        self.desk.restore(self.threads[at], snapshot, &names, Caller::human(), Handling::default())?;
        self.model.restore(at, &wanted, only.as_deref());
        Ok(format!("restore of version {version} in thread {at}, {only:?}"))
    }

    fn branch(&mut self, at: usize) -> Result<String, Trouble> {
        let id = self.threads[at];
        let active = self.model.threads[at].active();
        let last = self.model.threads[at].story(active).entries().last().map(|(entry, _)| *entry);
        let branch = Command::Branch { from: self.takes[at][active], at: last, name: None };
        self.desk.change(id, branch, Caller::human(), Handling::default())?;
        self.takes[at].push(self.desk.timeline().look()?.state(id)?.active);
        self.model.branch(at);
        Ok(format!("branch in thread {at}"))
    }

    fn switch(&mut self, at: usize) -> Result<String, Trouble> {
        let id = self.threads[at];
        let state = self.desk.timeline().look()?.state(id)?;
        let present: Vec<TakeId> = {
            let looking = self.desk.timeline().look()?;
            state.all_takes(&looking.queries())?.into_iter().map(|take| take.id).collect()
        };
        let others: Vec<TakeId> = present.into_iter().filter(|take| *take != state.active).collect();
        let Some(take) = self.dice.pick(&others).copied() else { return Ok("no other take".to_owned()) };
        self.desk.change(id, Command::Switch { take }, Caller::human(), Handling::default())?;
        let number = self.takes[at].iter().position(|known| *known == take).ok_or("an unknown take")?;
        self.model.switch(at, number);
        Ok(format!("switch to take {number} in thread {at}"))
    }
}

fn root_path(path: &Path) -> Result<RootPath, Trouble> {
    let text = path.to_str().ok_or("not a text")?;
    Ok(RootPath { root: String::new(), path: TreePath::new(text.as_bytes())? })
}
