//! Finds out whether an entry version is in a take now, and where.
//!
//! The index contains every version that ever existed. Whether a version is current is looked up only for hits: first
//! in the active take, then in the others. A thread can have thousands of takes; then their shared nodes are visited
//! once per search instead of once per take.

use std::collections::{HashMap, HashSet};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId};
use retake_model::list::{EntryCell, List};
use retake_model::object::load;
use retake_model::state::ThreadState;

use super::new_versions::unless_damaged;
use crate::StoreError;
use crate::log::queries::Queries;

/// Up to this many takes are searched one by one.
const FEW_TAKES: usize = 16;

/// The current position of an entry version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryPosition {
    pub(super) take: TakeId,
    pub(super) position: u64,
}

/// The threads looked up so far.
pub(super) struct PositionLookup<'search, 'reading> {
    reading: &'search Queries<'reading>,
    threads: HashMap<i64, Option<CurrentTakes>>,
}

/// The current takes of a thread.
struct CurrentTakes {
    /// The takes, the active one first.
    takes: Vec<(TakeId, List<EntryCell>)>,
    /// The take of each version, for threads with many takes.
    take_by_version: Option<HashMap<(EntryId, ContentId), usize>>,
}

impl<'search, 'reading> PositionLookup<'search, 'reading> {
    pub(super) fn new(reading: &'search Queries<'reading>) -> Self {
        Self { reading, threads: HashMap::new() }
    }

    /// The current position of a version; `None` if no take contains it, or the thread cannot be read.
    pub(super) fn place(
        &mut self,
        thread: i64,
        entry: EntryId,
        version: ContentId,
    ) -> Result<Option<EntryPosition>, StoreError> {
        let reading = self.reading;
        let now = match self.threads.entry(thread) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                unknown.insert(unless_damaged(CurrentTakes::of(reading, thread))?.flatten())
            }
        };
        let found = now.as_mut().map(|now| now.place(reading, entry, version));
        Ok(unless_damaged(found.transpose())?.flatten().flatten())
    }
}

impl CurrentTakes {
    fn of(reading: &Queries<'_>, thread: i64) -> Result<Option<Self>, StoreError> {
        let Some(head) = reading.head(thread)? else {
            return Ok(None);
        };
        let state: ThreadState = load(reading, head.operation.after)?;
        let all = state.all_takes(reading)?;
        let mut takes: Vec<_> = all.into_iter().map(|take| (take.id, take.entries)).collect();
        takes.sort_by_key(|&(take, _)| take != state.active);
        Ok(Some(Self { takes, take_by_version: None }))
    }

    fn place(
        &mut self,
        reading: &Queries<'_>,
        entry: EntryId,
        version: ContentId,
    ) -> Result<Option<EntryPosition>, StoreError> {
        let Some((active, others)) = self.takes.split_first() else {
            return Ok(None);
        };
        let found = find_in(reading, active, entry, version)?;
        if found.is_some() {
            return Ok(found);
        }
        if others.len() <= FEW_TAKES {
            for take in others {
                let found = find_in(reading, take, entry, version)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            return Ok(None);
        }
        if self.take_by_version.is_none() {
            self.take_by_version = Some(take_by_version(reading, others)?);
        }
        match self.take_by_version.as_ref().and_then(|take_by_version| take_by_version.get(&(entry, version)))
        {
            Some(&index) => find_in(reading, &others[index], entry, version),
            None => Ok(None),
        }
    }
}

fn find_in(
    reading: &Queries<'_>,
    (take, entries): &(TakeId, List<EntryCell>),
    entry: EntryId,
    version: ContentId,
) -> Result<Option<EntryPosition>, StoreError> {
    let found = entries.find(reading, entry.bytes())?;
    Ok(found
        .filter(|(_, cell)| cell.version == version)
        .map(|(position, _)| EntryPosition { take: *take, position }))
}

/// Maps every version in these takes to the first take that contains it.
fn take_by_version(
    reading: &Queries<'_>,
    takes: &[(TakeId, List<EntryCell>)],
) -> Result<HashMap<(EntryId, ContentId), usize>, StoreError> {
    let mut take_by_version = HashMap::new();
    let mut seen = HashSet::new();
    for (index, (_, entries)) in takes.iter().enumerate() {
        entries.visit_nodes(reading, &mut |node| seen.insert(node), &mut |cell| {
            take_by_version.entry((cell.entry, cell.version)).or_insert(index);
        })?;
    }
    Ok(take_by_version)
}
