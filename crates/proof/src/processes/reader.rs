//! A reader: reads continuously while others write, and must never see a partial change.

use std::collections::HashMap;
use std::path::Path;

use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::object::load;
use retake_store::{Deleted, ThreadFilter, ThreadRow};
use retake_timeline::{Looking, Rules, Timeline};

use super::plan::{Plan, stop, store};
use crate::dice::Dice;
use crate::violation::Trouble;

/// How much of each log is read at a time.
const RECENT: usize = 40;

/// Reads until it is stopped; returns the number of passes.
pub fn read(ground: &Path, seed: u64) -> Result<u64, Trouble> {
    let plan = Plan::load(ground)?;
    let timeline = Timeline::open(&store(ground), Rules::default())?;
    let mut dice = Dice::new(seed);
    let mut versions = HashMap::new();
    let mut looks = 0;
    while !stop(ground).exists() {
        let looking = timeline.look()?;
        let threads =
            looking.threads(&ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() })?;
        let whole = dice.index(threads.len().max(1));
        for (place, row) in threads.iter().enumerate() {
            let seen = versions.insert(row.summary.id, row.summary.version).unwrap_or(0);
            if seen > row.summary.version {
                return Err(format!("thread {} went back from {seen}", row.summary.id).into());
            }
            log(&looking, row, RECENT)?;
            state(&looking, row, plan.shared.contains(&row.summary.id))?;
            if place == whole {
                content(&looking, row.summary.id)?;
            }
        }
        looks += 1;
    }
    Ok(looks)
}

/// The log must end where the index says, without gaps, and each operation must name its predecessor.
pub(super) fn log(looking: &Looking<'_>, row: &ThreadRow, limit: usize) -> Result<(), Trouble> {
    let found = looking.queries().operations_back(row.number, u64::MAX, limit)?;
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
fn state(looking: &Looking<'_>, row: &ThreadRow, shared: bool) -> Result<(), Trouble> {
    let state = looking.state(row.summary.id)?;
    let takes = state.all_takes(&looking.queries())?;
    let mut held: Vec<_> =
        takes.iter().map(|take| (take.id, take.name.clone(), take.entries.len())).collect();
    let listed = looking.queries().takes_of(row.number)?;
    let mut listed: Vec<_> =
        listed.into_iter().map(|take| (take.summary.id, take.summary.name, take.summary.entries)).collect();
    held.sort();
    listed.sort();
    if held != listed || row.summary.takes != takes.len() as u64 {
        return Err(format!("the index of takes of {} is not its state", row.summary.id).into());
    }
    let entries: u64 = takes.iter().map(|take| take.entries.len()).sum();
    if shared && entries != row.summary.version - 1 {
        return Err(format!("version {} has {entries} entries", row.summary.version).into());
    }
    Ok(())
}

/// Every entry of the newest state must be readable.
fn content(looking: &Looking<'_>, thread: ThreadId) -> Result<(), Trouble> {
    let queries = looking.queries();
    for take in looking.state(thread)?.all_takes(&queries)? {
        for cell in take.entries.iter(&queries, 0) {
            let _: EntryVersion = load(&queries, cell?.version)?;
        }
    }
    Ok(())
}
