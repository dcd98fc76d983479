//! The rules for a store after a fault.
//!
//! - every earlier operation still exists, unchanged and in its position;
//! - an acknowledged command had its full effect; another had its full effect, a consistent part of it, or none;
//! - context presets, shared prompts, roles and projects are as before or as after the command;
//! - every state in the log loads, and `verify` finds nothing;
//! - the next change works.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_store::{Deleted, SettingScope, ThreadFilter};
use retake_timeline::{Caller, Command, LookError, Looking, Rules, Spot, Timeline, Unit};

use super::script::Step;

/// The operation ids of every thread, in order, and the records that are in no log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    threads: BTreeMap<ThreadId, Vec<ContentId>>,
    beside: Beside,
}

/// Records that are in no log: for each project, the context presets with their old versions, and the shared prompts
/// and roles of its threads.
type Beside = BTreeMap<String, BTreeSet<String>>;

/// The effect of a command without a fault.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The store before it.
    pub before: Logs,
    /// Number of operations that it adds.
    pub operations: usize,
    /// Number of threads that it destroys.
    pub purged: usize,
    /// The records outside the logs after it.
    after: Beside,
}

/// The outcome that the command reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// Unknown: the disk failed in the last step.
    Unsure,
    /// None: it was killed.
    Nothing,
}

impl Logs {
    /// Reads the store in this folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        if !folder.join("retake.db").exists() {
            return Ok(Self::default());
        }
        let timeline = open(folder)?;
        Self::of(&timeline)
    }

    fn of(timeline: &Timeline) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let looking = timeline.look().map_err(|error| text(&error))?;
        let filter = ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() };
        let mut logs = BTreeMap::new();
        for row in looking.threads(&filter).map_err(|error| text(&error))? {
            let found = looking.queries().operations_back(row.number, u64::MAX, usize::MAX);
            let mut operations = found.map_err(|error| text(&error))?;
            operations.reverse();
            let in_order =
                operations.iter().zip(1..).all(|(stored, version)| stored.operation.version == version);
            if !in_order || row.summary.version != operations.len() as u64 {
                return Err(format!("the log of {} has gaps", row.summary.id));
            }
            for stored in &operations {
                let state = looking.state_at(row.summary.id, stored.operation.version);
                let state = state.map_err(|error| text(&error))?;
                state.all_takes(&looking.queries()).map_err(|error| text(&error))?;
            }
            logs.insert(row.summary.id, operations.iter().map(|stored| stored.id).collect());
        }
        let beside = beside(timeline, &looking).map_err(|error| text(&error))?;
        Ok(Self { threads: logs, beside })
    }

    fn operations(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }
}

fn beside(timeline: &Timeline, looking: &Looking<'_>) -> Result<Beside, LookError> {
    let mut beside = Beside::new();
    for project in looking.queries().projects()? {
        let shared = timeline.store().shared_settings(SettingScope::Project(project.id))?;
        let mut facts = BTreeSet::from([format!("{:?}", (shared.presets, shared.former_presets))]);
        let filter = ThreadFilter { project: Some(project.id), ..ThreadFilter::default() };
        for row in looking.threads(&filter)? {
            let settings = looking.effective_settings(row.summary.id)?;
            let prompts = (settings.global_system_prompt, settings.project_system_prompt);
            facts.insert(format!("{:?}", (prompts, looking.effective_roles(row.summary.id)?)));
        }
        beside.insert(project.path, facts);
    }
    Ok(beside)
}

impl Expectation {
    /// The effect of a command, from the stores before and after it.
    pub fn between(before: Logs, after: &Logs) -> Self {
        let gone = before.threads.keys().filter(|thread| !after.threads.contains_key(thread)).count();
        let left = before.threads.iter().filter(|(id, _)| after.threads.contains_key(id));
        let kept: usize = left.map(|(_, log)| log.len()).sum();
        let operations = after.operations() - kept;
        Self { operations, purged: gone, before, after: after.beside.clone() }
    }

    /// Checks the store after a fault. The error names the broken promise.
    pub(super) fn check(&self, folder: &Path, step: &Step, told: Told) -> Result<(), String> {
        if !folder.join("retake.db").exists() {
            return if self.before == Logs::default() && told != Told::Done {
                Ok(())
            } else {
                Err("the store is gone".to_owned())
            };
        }
        let timeline = open(folder)?;
        let logs = Logs::of(&timeline)?;
        let (made, gone) = self.compare(&logs, step)?;
        match told {
            Told::Done if made != self.operations || gone != self.purged => {
                return Err(format!(
                    "acknowledged, but {made} of {} operations and {gone} of {} purges are there",
                    self.operations, self.purged
                ));
            }
            Told::Failed if made > 0 && made == self.operations => {
                return Err("reported as failed, but it was done".to_owned());
            }
            _ => {}
        }
        if made > self.operations || gone > self.purged {
            return Err(format!("{made} operations where there should be at most {}", self.operations));
        }
        let whole = logs.beside == self.after || (told != Told::Done && logs.beside == self.before.beside);
        if !whole {
            return Err(format!(
                "beside the logs: {:?} is neither {:?} nor {:?}",
                logs.beside, self.before.beside, self.after
            ));
        }
        verified(&timeline)?;
        next_change_works(&timeline, &logs)
    }

    /// The number of new operations and destroyed threads. Everything else must be unchanged.
    fn compare(&self, after: &Logs, step: &Step) -> Result<(usize, usize), String> {
        let mut kept = 0;
        let mut gone = 0;
        for (thread, log) in &self.before.threads {
            match after.threads.get(thread) {
                Some(now) if now.starts_with(log) => kept += log.len(),
                Some(_) => return Err(format!("acknowledged operations of {thread} were lost or altered")),
                None if step.destroys => gone += 1,
                None => return Err(format!("thread {thread} was lost")),
            }
        }
        if after.threads.len() + gone < self.before.threads.len() {
            return Err("threads were lost".to_owned());
        }
        Ok((after.operations() - kept, gone))
    }
}

/// The store must open and verify.
pub(super) fn verified_at(folder: &Path) -> Result<(), String> {
    verified(&open(folder)?)
}

fn open(folder: &Path) -> Result<Timeline, String> {
    Timeline::open(folder, Rules::default()).map_err(|error| format!("the store does not open: {error}"))
}

fn verified(timeline: &Timeline) -> Result<(), String> {
    let found = timeline.store().verify(&mut |_| {}).map_err(|error| format!("verify failed: {error}"))?;
    match found.problems.first() {
        None => Ok(()),
        Some(problem) => Err(format!("verify found {} problems, the first: {problem}", found.problems.len())),
    }
}

fn next_change_works(timeline: &Timeline, logs: &Logs) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("the next change failed: {error}");
    for thread in logs.threads.keys().take(1) {
        let looking = timeline.look().map_err(|error| fail(&error))?;
        let state = looking.state(*thread).map_err(|error| fail(&error))?;
        drop(looking);
        if state.deleted.is_some() {
            continue;
        }
        let entry = EntryVersion::from_text("User", "after the fault", timeline.now());
        let add = Command::AddEntries { take: state.active, at: Spot::End, entries: vec![entry.into()] };
        timeline.change(*thread, add, Caller::human()).map_err(|error| fail(&error))?;
        timeline.undo(*thread, Unit::Turn, 1, Caller::human()).map_err(|error| fail(&error))?;
    }
    Ok(())
}
