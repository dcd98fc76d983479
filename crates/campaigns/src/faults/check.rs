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
use retake_store::{DeletedFilter, SettingScope, ThreadFilter};
use retake_timeline::{Caller, Command, InsertPosition, ReadError, Reader, Rules, Timeline, Unit};

use super::script::Step;

/// The operation ids of every thread, in order, and the records that are in no log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreContents {
    threads: BTreeMap<ThreadId, Vec<ContentId>>,
    project_records: ProjectRecords,
}

/// Records that are in no log: for each project, the context presets with their old versions, and the shared prompts
/// and roles of its threads.
type ProjectRecords = BTreeMap<String, BTreeSet<String>>;

/// The effect of a command without a fault.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The store before it.
    pub before: StoreContents,
    /// Number of operations that it adds.
    pub operations: usize,
    /// Number of threads that it destroys.
    pub purged: usize,
    /// The records outside the logs after it.
    after: ProjectRecords,
}

/// The outcome that the command reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedOutcome {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// Unknown: the disk failed in the last step.
    Unsure,
    /// None: it was killed.
    Nothing,
}

impl StoreContents {
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
        let reader = timeline.read().map_err(|error| text(&error))?;
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let mut logs = BTreeMap::new();
        for row in reader.threads(&filter).map_err(|error| text(&error))? {
            let found = reader.queries().operations_back(row.number, u64::MAX, usize::MAX);
            let mut operations = found.map_err(|error| text(&error))?;
            operations.reverse();
            let in_order =
                operations.iter().zip(1..).all(|(stored, version)| stored.operation.version == version);
            if !in_order || row.summary.version != operations.len() as u64 {
                return Err(format!("the log of {} has gaps", row.summary.id));
            }
            for stored in &operations {
                let state = reader.state_at(row.summary.id, stored.operation.version);
                let state = state.map_err(|error| text(&error))?;
                state.all_takes(&reader.queries()).map_err(|error| text(&error))?;
            }
            logs.insert(row.summary.id, operations.iter().map(|stored| stored.id).collect());
        }
        let project_records = project_records(timeline, &reader).map_err(|error| text(&error))?;
        Ok(Self { threads: logs, project_records })
    }

    fn operations(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }
}

fn project_records(timeline: &Timeline, reader: &Reader<'_>) -> Result<ProjectRecords, ReadError> {
    let mut project_records = ProjectRecords::new();
    for project in reader.queries().projects()? {
        let shared = timeline.store().shared_settings(SettingScope::Project(project.id))?;
        let mut facts = BTreeSet::from([format!("{:?}", (shared.presets, shared.former_presets))]);
        let filter = ThreadFilter { project: Some(project.id), ..ThreadFilter::default() };
        for row in reader.threads(&filter)? {
            let settings = reader.settings(row.summary.id).effective()?;
            let prompts = (settings.global_system_prompt, settings.project_system_prompt);
            facts.insert(format!("{:?}", (prompts, reader.settings(row.summary.id).roles()?)));
        }
        project_records.insert(project.path, facts);
    }
    Ok(project_records)
}

impl Expectation {
    /// The effect of a command, from the stores before and after it.
    pub fn between(before: StoreContents, after: &StoreContents) -> Self {
        let gone = before.threads.keys().filter(|thread| !after.threads.contains_key(thread)).count();
        let left = before.threads.iter().filter(|(id, _)| after.threads.contains_key(id));
        let kept: usize = left.map(|(_, log)| log.len()).sum();
        let operations = after.operations() - kept;
        Self { operations, purged: gone, before, after: after.project_records.clone() }
    }

    /// Checks the store after a fault. The error names the broken promise.
    pub(super) fn check(&self, folder: &Path, step: &Step, reported: ReportedOutcome) -> Result<(), String> {
        if !folder.join("retake.db").exists() {
            return if self.before == StoreContents::default() && reported != ReportedOutcome::Done {
                Ok(())
            } else {
                Err("the store is gone".to_owned())
            };
        }
        let timeline = open(folder)?;
        let logs = StoreContents::of(&timeline)?;
        let (made, gone) = self.compare(&logs, step)?;
        match reported {
            ReportedOutcome::Done if made != self.operations || gone != self.purged => {
                return Err(format!(
                    "acknowledged, but the log has only {made} of {} operations and {gone} of {} purges",
                    self.operations, self.purged
                ));
            }
            ReportedOutcome::Failed if made > 0 && made == self.operations => {
                return Err("reported as failed, but it was executed".to_owned());
            }
            _ => {}
        }
        if made > self.operations || gone > self.purged {
            return Err(format!("{made} operations where there should be at most {}", self.operations));
        }
        let whole = logs.project_records == self.after
            || (reported != ReportedOutcome::Done && logs.project_records == self.before.project_records);
        if !whole {
            return Err(format!(
                "outside the logs: {:?} is neither {:?} nor {:?}",
                logs.project_records, self.before.project_records, self.after
            ));
        }
        verified(&timeline)?;
        next_change_works(&timeline, &logs)
    }

    /// The number of new operations and destroyed threads. Everything else must be unchanged.
    fn compare(&self, after: &StoreContents, step: &Step) -> Result<(usize, usize), String> {
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

fn next_change_works(timeline: &Timeline, logs: &StoreContents) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("the next change failed: {error}");
    for thread in logs.threads.keys().take(1) {
        let reader = timeline.read().map_err(|error| fail(&error))?;
        let state = reader.state(*thread).map_err(|error| fail(&error))?;
        drop(reader);
        if state.deleted.is_some() {
            continue;
        }
        let entry = EntryVersion::from_text("User", "after the fault", timeline.now());
        let add =
            Command::AddEntries { take: state.active, at: InsertPosition::End, entries: vec![entry.into()] };
        timeline.change(*thread, add, Caller::human()).map_err(|error| fail(&error))?;
        timeline.undo(*thread, Unit::Turn, 1, Caller::human()).map_err(|error| fail(&error))?;
    }
    Ok(())
}
