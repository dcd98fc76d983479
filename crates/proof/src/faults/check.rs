//! What a store must be after a fault.
//!
//! - every operation that was there before is still there, unchanged and in its place;
//! - a command that was acknowledged did all that it does; one that was not did all of it, or a part that is
//!   whole in itself, or nothing;
//! - every state in the log loads, and `verify` finds nothing;
//! - the next change works.

use std::collections::BTreeMap;
use std::path::Path;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_store::{Deleted, ThreadFilter};
use retake_timeline::{Caller, Command, Rules, Spot, Timeline, Unit};

use super::script::Step;

/// The log of every thread: the names of its operations, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs(BTreeMap<ThreadId, Vec<ContentId>>);

/// What a command does when nothing goes wrong.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The logs before it.
    pub before: Logs,
    /// How many operations it makes.
    pub operations: usize,
    /// How many threads it takes away.
    pub purged: usize,
}

/// What became of the command, as its caller saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It worked.
    Done,
    /// It failed, and said so.
    Failed,
    /// The disk failed in the last step, and it said that it does not know.
    Unsure,
    /// Nothing: it died.
    Nothing,
}

impl Logs {
    /// The logs of the store in that folder.
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
        Ok(Self(logs))
    }

    fn operations(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn threads(&self) -> usize {
        self.0.len()
    }
}

impl Expectation {
    /// What a command did, seen from the logs before and after it.
    pub fn between(before: Logs, after: &Logs) -> Self {
        let gone = before.0.keys().filter(|thread| !after.0.contains_key(thread)).count();
        let kept: usize =
            before.0.iter().filter(|(id, _)| after.0.contains_key(id)).map(|(_, log)| log.len()).sum();
        Self { operations: after.operations() - kept, purged: gone, before }
    }

    /// Looks at the store after a fault. The error says which promise was broken.
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
        verified(&timeline)?;
        next_change_works(&timeline, &logs)
    }

    /// How many operations are new, and how many threads are gone. All that was there must be there.
    fn compare(&self, after: &Logs, step: &Step) -> Result<(usize, usize), String> {
        let mut kept = 0;
        let mut gone = 0;
        for (thread, log) in &self.before.0 {
            match after.0.get(thread) {
                Some(now) if now.starts_with(log) => kept += log.len(),
                Some(_) => return Err(format!("acknowledged operations of {thread} were lost or altered")),
                None if step.destroys => gone += 1,
                None => return Err(format!("thread {thread} was lost")),
            }
        }
        if after.threads() + gone < self.before.threads() {
            return Err("threads were lost".to_owned());
        }
        Ok((after.operations() - kept, gone))
    }
}

/// Checks that the store in that folder opens and verifies clean.
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
    for thread in logs.0.keys().take(1) {
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
