//! Checks that the store contains every acknowledged operation exactly once, in one serial order.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use retake_model::id::{EntryId, ThreadId};
use retake_model::operation::OperationKind;
use retake_store::StoredOperation;
use retake_timeline::{Reader, Rules, Timeline};

use super::acknowledgement::{AcknowledgedOperation, Acknowledgements};
use super::plan::{Plan, PlannedOperation, store};
use super::reader::log;
use super::run::Summary;
use crate::violation::BoxError;

/// Compares the store with the acknowledgements and the plan.
pub(super) fn check(scratch: &Path, plan: &Plan) -> Result<Summary, BoxError> {
    let timeline = Timeline::open(&store(scratch), Rules::default())?;
    let reader = timeline.read()?;
    let mut summary = Summary::default();
    let mut logs = HashMap::new();
    let mut stored = HashMap::new();
    for thread in plan.shared.iter().chain(&plan.own) {
        let row = reader.thread(*thread)?;
        log(&reader, &row, usize::MAX)?;
        let operations = reader.queries().operations_back(row.number, u64::MAX, usize::MAX)?;
        logs.insert(*thread, operations);
        stored.insert(*thread, entries(&reader, *thread)?);
    }
    for lane in 0..plan.own.len() {
        let lines = Acknowledgements::read(scratch, lane)?;
        for (ordinal, line) in lines.iter().enumerate() {
            if line.ordinal != ordinal as u64 {
                return Err(format!("lane {lane} acknowledged {} after {ordinal}", line.ordinal).into());
            }
            summary.conflicts += line.tries.saturating_sub(1);
            summary.in_doubt += u64::from(line.tries == 0);
            if let Some(done) = &line.done {
                summary.acknowledged += 1;
                acknowledged(done, &logs, &stored)
                    .map_err(|trouble| format!("lane {lane}, operation {ordinal}: {trouble}"))?;
            }
        }
        if lines.len() as u64 != plan.operations {
            return Err(format!("lane {lane} ended after {} operations", lines.len()).into());
        }
    }
    exactly_once(plan, &stored)?;
    let problems = timeline.store().verify(&mut |_| {})?.problems;
    if problems.is_empty() { Ok(summary) } else { Err(format!("verify finds {problems:?}").into()) }
}

/// An acknowledged operation must be in the log, with its entry.
fn acknowledged(
    done: &AcknowledgedOperation,
    logs: &HashMap<ThreadId, Vec<StoredOperation>>,
    stored: &HashMap<ThreadId, Vec<EntryId>>,
) -> Result<(), BoxError> {
    let log = logs.get(&done.thread).ok_or("on a thread that is not there")?;
    if let Some((version, id)) = done.operation {
        // Newest first, without gaps.
        let place = log.len().checked_sub(version as usize).ok_or("a version that is not there")?;
        let found = log.get(place).ok_or("a version that is not there")?;
        if found.operation.version != version || found.id != id {
            return Err(format!("version {version} is another operation than the acknowledged one").into());
        }
        let added = matches!(&found.operation.kind,
            OperationKind::EntriesAdded { entry, .. } if Some(*entry) == done.entry);
        if done.entry.is_some() && !added {
            return Err(format!("version {version} did not add the acknowledged entry").into());
        }
    }
    match done.entry {
        Some(entry) if !stored.get(&done.thread).is_some_and(|stored| stored.contains(&entry)) => {
            Err(format!("the acknowledged entry {entry} is lost").into())
        }
        _ => Ok(()),
    }
}

/// Shared threads must contain every planned entry once, and nothing else.
fn exactly_once(plan: &Plan, stored: &HashMap<ThreadId, Vec<EntryId>>) -> Result<(), BoxError> {
    let mut planned: HashMap<ThreadId, HashSet<EntryId>> = HashMap::new();
    for lane in 0..plan.own.len() {
        for ordinal in 0..plan.operations {
            if let (PlannedOperation::Add { thread, entry, .. }, _) = plan.operation(lane, ordinal) {
                planned.entry(thread).or_default().insert(entry);
            }
        }
    }
    for thread in &plan.shared {
        let found = stored.get(thread).map(Vec::as_slice).unwrap_or_default();
        let once: HashSet<EntryId> = found.iter().copied().collect();
        if once.len() != found.len() {
            return Err(format!("thread {thread} holds an entry twice").into());
        }
        if once != planned.remove(thread).unwrap_or_default() {
            return Err(format!("thread {thread} does not hold exactly what was added").into());
        }
    }
    Ok(())
}

fn entries(reader: &Reader<'_>, thread: ThreadId) -> Result<Vec<EntryId>, BoxError> {
    let queries = reader.queries();
    let take = reader.state(thread)?.active_take(&queries)?;
    let ids: Result<Vec<EntryId>, _> = take.entries.iter(&queries, 0).map(|cell| Ok(cell?.entry)).collect();
    ids.map_err(|error: retake_model::object::ObjectError| error.into())
}
