//! The campaign: random steps in the real folder and in the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{
    Caller, Command, Goal, MoveOptions, NewThread, Rules, Scope, SeededClock, Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;

use crate::folder::{FileNode, Folder};
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation, caught};

use super::reference::{ModelFault, ReferenceModel};
use super::work::{beginning, edit, revert, write};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct EditsPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of steps.
    pub steps: u64,
    /// The injected fault.
    pub mistake: Option<ModelFault>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditsSummary {
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
const STEPS_PER_PROJECT: u64 = 150;

/// Runs the campaign.
pub fn walk(plan: EditsPlan) -> Result<EditsSummary, CampaignError> {
    let mut rng = Rng::new(plan.seed);
    let mut summary = EditsSummary::default();
    while summary.steps < plan.steps {
        let leg = rng.split();
        let mut leg = EditSession::begin(leg, plan.mistake)?;
        for _ in 0..STEPS_PER_PROJECT.min(plan.steps - summary.steps) {
            summary.steps += 1;
            let what = leg.step(&mut summary)?;
            leg.compare().map_err(|broken| {
                let what = format!("{what}: {broken}");
                CampaignError::Violation(Violation {
                    campaign: "edits",
                    seed: plan.seed,
                    step: summary.steps,
                    what,
                })
            })?;
        }
    }
    Ok(summary)
}

/// The controls: each fault of the model must be noticed. Returns their number.
pub fn controls(seed: u64) -> Result<usize, BoxError> {
    for mistake in ModelFault::ALL {
        let plan = EditsPlan { seed, steps: 20_000, mistake: Some(mistake) };
        caught(&format!("{mistake:?}"), walk(plan))?;
    }
    Ok(ModelFault::ALL.len())
}

pub(super) struct EditSession {
    scratch: ScratchDir,
    pub(super) working_copy: WorkingCopy,
    pub(super) threads: Vec<ThreadId>,
    /// The takes of each thread, in order of creation.
    pub(super) takes: Vec<Vec<TakeId>>,
    pub(super) model: ReferenceModel,
    pub(super) rng: Rng,
    /// A rule that was broken within a step.
    broken: Option<String>,
}

impl EditSession {
    fn begin(mut rng: Rng, mistake: Option<ModelFault>) -> Result<Self, BoxError> {
        let scratch = ScratchDir::for_files()?;
        let (store, folder) = (scratch.path().join("home"), scratch.path().join("project"));
        std::fs::create_dir_all(&folder)?;
        let files = beginning();
        write(&folder, &Folder::default(), &files)?;
        let project = ProjectId::from_bytes([7; 16]);
        let timeline =
            Timeline::open_with(&store, Rules::default(), Arc::new(SeededClock::new(rng.next_u64())))?;
        let mut threads = Vec::new();
        for _ in 0..2 {
            threads.push(timeline.create_thread(NewThread::in_project(project), Caller::human())?.thread);
        }
        let takes = {
            let reader = timeline.read()?;
            threads.iter().map(|id| Ok(vec![reader.state(*id)?.active])).collect::<Result<_, BoxError>>()?
        };
        let working_copy = WorkingCopy::at(timeline, project, Workspace::of(&folder)?);
        working_copy.record_changes(threads[0], Caller::human())?;
        let model = ReferenceModel::new(threads.len(), files, mistake);
        Ok(Self { scratch, working_copy, threads, takes, model, rng, broken: None })
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// Every path must match the model, and every log must have the same length.
    fn compare(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        for (id, thread) in self.threads.iter().zip(&self.model.threads) {
            let reader = self.working_copy.timeline().read().map_err(|error| error.to_string())?;
            let version = reader.head(*id).map_err(|error| error.to_string())?.operation.version;
            if version != thread.version() as u64 {
                return Err(format!("the log ends with {version} instead of {}", thread.version()));
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
    fn work(&mut self) -> Result<(), BoxError> {
        let before = self.model.present.clone();
        for _ in 0..=self.rng.below(4) {
            edit(&mut self.model.present, &mut self.rng);
        }
        write(&self.folder(), &before, &self.model.present)
    }

    /// The user restores old content of some paths, or deletes them.
    fn revert(&mut self) -> Result<(), BoxError> {
        let before = self.model.present.clone();
        let at = self.rng.index(self.threads.len());
        let past = self.model.threads[at].some_past(&mut self.rng);
        for _ in 0..=self.rng.below(3) {
            let other = if self.rng.once_in(3) { None } else { past.as_deref() };
            revert(&mut self.model.present, other, &mut self.rng);
        }
        write(&self.folder(), &before, &self.model.present)
    }

    /// Undo, sometimes reverts by the user, then redo. Independently of the model, a redo must restore what the undo
    /// changed and leave alone what the undo left alone.
    fn there_and_back(&mut self, at: usize) -> Result<String, BoxError> {
        let id = self.threads[at];
        let Some(to) = self.model.threads[at].undo() else { return Ok("nothing to undo".to_owned()) };
        let found = self.model.present.clone();
        self.working_copy.go(id, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default())?;
        self.model.move_to(at, to);
        let undone = Folder::read(&self.folder())?;
        if self.rng.once_in(2) {
            self.revert()?;
        }
        let Some(to) = self.model.threads[at].redo() else { return Ok("nothing to redo".to_owned()) };
        let before = self.model.present.clone();
        self.working_copy.go(id, Goal::Redo(Unit::Turn, 1), Caller::human(), MoveOptions::default())?;
        self.model.move_to(at, to);
        let redone = Folder::read(&self.folder())?;
        let folder = |thing: Option<&FileNode>| matches!(thing, Some(FileNode::Folder(_)));
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
    fn far_and_back(&mut self, at: usize) -> Result<String, BoxError> {
        let id = self.threads[at];
        let thread = &self.model.threads[at];
        let Some(to) = thread.undo().and_then(|near| thread.undo_from(near)) else {
            return Ok("nothing to undo twice".to_owned());
        };
        let found = self.model.present.clone();
        self.working_copy.go(id, Goal::Undo(Unit::Turn, 2), Caller::human(), MoveOptions::default())?;
        self.model.move_to(at, to);
        for _ in 0..2 {
            let to = self.model.threads[at].redo().ok_or("two steps lie ahead")?;
            self.working_copy.go(id, Goal::Redo(Unit::Turn, 1), Caller::human(), MoveOptions::default())?;
            self.model.move_to(at, to);
        }
        if Folder::read(&self.folder())? != found {
            self.broken = Some("an undo of two steps and two redos are not the identity".to_owned());
        }
        Ok(format!("two steps back and forth in thread {at}"))
    }

    /// One step; returns its description.
    fn step(&mut self, summary: &mut EditsSummary) -> Result<String, BoxError> {
        let at = self.rng.index(self.threads.len());
        let id = self.threads[at];
        let roll = self.rng.below(26);
        if roll < 6 {
            self.working_copy.record_changes(id, Caller::human())?;
            self.model.record_hand_edits(at);
            self.work()?;
            self.working_copy.record_as_caller(id, Caller { actor: Actor::Agent, ..Caller::human() })?;
            self.model.record(at);
            return Ok(format!("the agent of thread {at} works"));
        }
        if roll < 9 {
            if self.rng.once_in(3) {
                self.revert()?;
                return Ok("a human reverts files".to_owned());
            }
            self.work()?;
            return Ok("a human works".to_owned());
        }
        if self.rng.once_in(6) {
            summary.moves += 2;
            return if self.rng.once_in(3) { self.far_and_back(at) } else { self.there_and_back(at) };
        }
        if roll >= 20 {
            return match roll {
                20..=21 => self.add_entry(at),
                22 => self.rearrange(at),
                25 if self.rng.once_in(3) => self.promote(at, summary),
                _ => self.split(at, summary),
            };
        }
        summary.moves += 1;
        let thread = &self.model.threads[at];
        let goal = match roll {
            9..=12 => thread.undo().map(|to| (Goal::Undo(Unit::Turn, 1), to)),
            13..=15 => thread.redo().map(|to| (Goal::Redo(Unit::Turn, 1), to)),
            16 => {
                let version = 1 + self.rng.index(thread.version());
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
        if !matches!(goal, Goal::Jump(_)) && self.rng.once_in(6) {
            let Some(to) = self.model.threads[at].alone(matches!(goal, Goal::Undo(..))) else {
                return Ok("only files could move".to_owned());
            };
            if to == 1 && self.model.threads[at].is_promoted {
                return Ok("a promoted thread is still worked on".to_owned());
            }
            let alone = MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() };
            self.working_copy.go(id, goal, Caller::human(), alone)?;
            self.model.go_alone(at, to);
            return Ok(format!("{goal:?} of the conversation alone in thread {at}"));
        }
        let moment = self.working_copy.go(id, goal, Caller::human(), MoveOptions::default())?;
        let report = moment.files.as_ref();
        let count = report.map_or(0, |files| {
            files.count(|outcome| {
                matches!(
                    outcome,
                    retake_timeline::Outcome::Merged | retake_timeline::Outcome::Conflicted { .. }
                )
            })
        });
        summary.merged += count as u64;
        match goal {
            Goal::Jump(version) => self.model.jump(at, version as usize),
            _ => self.model.move_to(at, to),
        }
        Ok(format!("{goal:?} in thread {at}"))
    }

    fn restore(&mut self, at: usize) -> Result<String, BoxError> {
        let version = 1 + self.rng.index(self.model.threads[at].version());
        let Some(wanted) = self.model.threads[at].files_at(version) else {
            return Ok("no files yet".to_owned());
        };
        let found = self.working_copy.timeline().read()?.files(self.threads[at]).at(version as u64)?;
        let snapshot = found.ok_or("the working copy has no files for this version")?.files.after;
        let paths: Vec<&PathBuf> = wanted.0.keys().collect();
        let only = if self.rng.once_in(2) { self.rng.pick(&paths).map(|path| (*path).clone()) } else { None };
        let names = only.iter().map(|path| root_path(path)).collect::<Result<Vec<_>, _>>()?;
        self.working_copy.restore(
            self.threads[at],
            snapshot,
            &names,
            Caller::human(),
            MoveOptions::default(),
        )?;
        self.model.restore(at, &wanted, only.as_deref());
        Ok(format!("restore of version {version} in thread {at}, {only:?}"))
    }

    fn branch(&mut self, at: usize) -> Result<String, BoxError> {
        let id = self.threads[at];
        let active = self.model.threads[at].active();
        let last = self.model.threads[at].history(active).entries().last().map(|(entry, _)| *entry);
        let branch = Command::Branch { from: self.takes[at][active], at: last, name: None };
        self.working_copy.change(id, branch, Caller::human(), MoveOptions::default())?;
        self.takes[at].push(self.working_copy.timeline().read()?.state(id)?.active);
        self.model.branch(at);
        Ok(format!("branch in thread {at}"))
    }

    fn switch(&mut self, at: usize) -> Result<String, BoxError> {
        let id = self.threads[at];
        let state = self.working_copy.timeline().read()?.state(id)?;
        let present: Vec<TakeId> = {
            let reader = self.working_copy.timeline().read()?;
            state.all_takes(&reader.queries())?.into_iter().map(|take| take.id).collect()
        };
        let others: Vec<TakeId> = present.into_iter().filter(|take| *take != state.active).collect();
        let Some(take) = self.rng.pick(&others).copied() else { return Ok("no other take".to_owned()) };
        let number = self.takes[at].iter().position(|known| *known == take).ok_or("an unknown take")?;
        if self.rng.once_in(4) {
            return self.switch_alone(at, number);
        }
        self.working_copy.change(id, Command::Switch { take }, Caller::human(), MoveOptions::default())?;
        self.model.switch(at, number);
        Ok(format!("switch to take {number} in thread {at}"))
    }
}

fn root_path(path: &Path) -> Result<RootPath, BoxError> {
    let text = path.to_str().ok_or("not a text")?;
    Ok(RootPath { root: String::new(), path: TreePath::new(text.as_bytes())? })
}
