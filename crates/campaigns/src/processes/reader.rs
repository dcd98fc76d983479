//! A reader: reads continuously while others write, and must never see a partial change.

use std::collections::HashMap;
use std::path::Path;

use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::object::load;
use retake_store::{DeletedFilter, ThreadFilter, ThreadRow};
use retake_timeline::{Reader, Rules, Timeline};

use super::plan::{Plan, stop, store};
use crate::rng::Rng;
use crate::violation::BoxError;

/// How much of each log is read at a time.
const LOG_WINDOW: usize = 40;

/// Reads until it is stopped; returns the number of passes.
pub fn read(scratch: &Path, seed: u64) -> Result<u64, BoxError> {
    let plan = Plan::load(scratch)?;
    let timeline = Timeline::open(&store(scratch), Rules::default())?;
    let mut rng = Rng::new(seed);
    let mut versions = HashMap::new();
    let mut reads = 0;
    while !stop(scratch).exists() {
        let reader = timeline.read()?;
        let threads =
            reader.threads(&ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() })?;
        let whole = rng.index(threads.len().max(1));
        for (place, row) in threads.iter().enumerate() {
            let seen = versions.insert(row.summary.id, row.summary.version).unwrap_or(0);
            if seen > row.summary.version {
                return Err(
                    format!("thread {} is older than {seen}, which was read before", row.summary.id).into()
                );
            }
            log(&reader, row, LOG_WINDOW)?;
            state(&reader, row, plan.shared.contains(&row.summary.id))?;
            if place == whole {
                content(&reader, row.summary.id)?;
            }
        }
        reads += 1;
    }
    Ok(reads)
}

/// The log must end where the index says, without gaps, and each operation must name its predecessor.
pub(super) fn log(reader: &Reader<'_>, row: &ThreadRow, limit: usize) -> Result<(), BoxError> {
    let found = reader.queries().operations_back(row.number, u64::MAX, limit)?;
    let mut expected = row.summary.version;
    for (place, stored) in found.iter().enumerate() {
        if stored.operation.version != expected {
            return Err(format!("{} has no version {expected}", row.summary.id).into());
        }
        let older = found.get(place + 1);
        if let Some(older) = older
            && stored.operation.previous != Some(older.id)
        {
            return Err(format!("version {expected} does not follow the one before it").into());
        }
        expected -= 1;
    }
    let complete = found.len() >= limit || expected == 0;
    if complete { Ok(()) } else { Err(format!("{} begins at version {expected}", row.summary.id).into()) }
}

/// The newest state must agree with the index, take by take.
fn state(reader: &Reader<'_>, row: &ThreadRow, shared: bool) -> Result<(), BoxError> {
    let state = reader.state(row.summary.id)?;
    let takes = state.all_takes(&reader.queries())?;
    let mut stored: Vec<_> =
        takes.iter().map(|take| (take.id, take.name.clone(), take.entries.len())).collect();
    let listed = reader.queries().takes_of(row.number)?;
    let mut listed: Vec<_> =
        listed.into_iter().map(|take| (take.summary.id, take.summary.name, take.summary.entries)).collect();
    stored.sort();
    listed.sort();
    if stored != listed || row.summary.takes != takes.len() as u64 {
        return Err(format!("the index of takes of {} is not its state", row.summary.id).into());
    }
    let entries: u64 = takes.iter().map(|take| take.entries.len()).sum();
    if shared && entries != row.summary.version - 1 {
        return Err(format!("version {} has {entries} entries", row.summary.version).into());
    }
    Ok(())
}

/// Every entry of the newest state must be readable.
fn content(reader: &Reader<'_>, thread: ThreadId) -> Result<(), BoxError> {
    let queries = reader.queries();
    for take in reader.state(thread)?.all_takes(&queries)? {
        for cell in take.entries.iter(&queries, 0) {
            let _: EntryVersion = load(&queries, cell?.version)?;
        }
    }
    Ok(())
}
