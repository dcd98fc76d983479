//! Finds the entry versions that an operation added to its thread.
//!
//! ```text
//!   takes before   main ─ A      fix ─ B            main: A against A', which shares all but what changed
//!   takes after    main ─ A'     fix ─ B   try ─ C  try:  C against the take that it was branched from
//! ```
//!
//! Lists are compared by the hashes of their nodes, so an edit among a hundred thousand entries costs a few reads,
//! and a branch costs none.

use std::collections::HashMap;

use retake_model::id::TakeId;
use retake_model::list::{EntryCell, List, TakeCell};
use retake_model::object::{ObjectError, load};
use retake_model::operation::Operation;
use retake_model::state::ThreadState;
use retake_model::take::Take;

use crate::StoreError;
use crate::log::queries::Queries;

/// Operations read at a time.
const PAGE: usize = 2000;

impl Queries<'_> {
    /// Passes every version that any entry ever had, with its thread's row number, to `each`, possibly more than
    /// once.
    ///
    /// Unlike the search index, this fails if the log cannot be read, so that nothing is missed.
    pub fn each_entry_version(
        &self,
        each: &mut dyn FnMut(i64, &EntryCell) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut place = 0;
        loop {
            let page = self.operations_since(place, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            place = last.0;
            for (_, thread, stored) in &page {
                let Some(stored) = stored else { continue };
                for cell in new_versions(self, *thread, &stored.operation)? {
                    each(*thread, &cell)?;
                }
            }
        }
    }
}

/// The entry versions that an operation added to its thread.
pub(super) fn new_versions(
    reading: &Queries<'_>,
    thread: i64,
    operation: &Operation,
) -> Result<Vec<EntryCell>, StoreError> {
    if operation.kind.is_not_undoable() {
        return Ok(Vec::new());
    }
    let after: ThreadState = load(reading, operation.after)?;
    let before = state_before(reading, thread, operation)?;
    let changed =
        List::diff(reading, &before.as_ref().map_or_else(List::empty, |state| state.takes), &after.takes)?;
    let mut cells = Vec::new();
    let mut done: HashMap<TakeId, List<EntryCell>> = HashMap::new();
    for cell in changed.iter().flat_map(|hunk| &hunk.added) {
        let take: Take = load(reading, cell.content)?;
        let known = known_entries(reading, before.as_ref(), &done, &take)?;
        let hunks = List::diff(reading, &known, &take.entries)?;
        cells.extend(hunks.into_iter().flat_map(|hunk| hunk.added));
        done.insert(take.id, take.entries);
    }
    Ok(cells)
}

/// The state before an operation. An unreadable one counts as none: then more is compared, and nothing is missed.
fn state_before(
    reading: &Queries<'_>,
    thread: i64,
    operation: &Operation,
) -> Result<Option<ThreadState>, StoreError> {
    let Some(version) = operation.version.checked_sub(1).filter(|&version| version > 0) else {
        return Ok(None);
    };
    let before = reading.operation(thread, version).and_then(|found| {
        let state = found.map(|found| load::<ThreadState>(reading, found.operation.after));
        Ok(state.transpose()?)
    });
    Ok(unless_damaged(before)?.flatten())
}

/// The known entries that a take shares most with: its own, or those of the take it was branched from, before or
/// earlier in the same operation.
fn known_entries(
    reading: &Queries<'_>,
    before: Option<&ThreadState>,
    done: &HashMap<TakeId, List<EntryCell>>,
    take: &Take,
) -> Result<List<EntryCell>, StoreError> {
    for id in [Some(take.id), take.parent].into_iter().flatten() {
        if let Some(entries) = done.get(&id) {
            return Ok(*entries);
        }
        if let Some(before) = before
            && let Some(entries) = entries_of(reading, &before.takes, id)?
        {
            return Ok(entries);
        }
    }
    Ok(List::empty())
}

fn entries_of(
    reading: &Queries<'_>,
    takes: &List<TakeCell>,
    take: TakeId,
) -> Result<Option<List<EntryCell>>, StoreError> {
    let entries = match takes.find(reading, take.bytes()) {
        Ok(Some((_, cell))) => load::<Take>(reading, cell.content).map(|take| Some(take.entries)),
        Ok(None) => Ok(None),
        Err(unavailable) => Err(unavailable),
    };
    Ok(unless_damaged(entries.map_err(StoreError::from))?.flatten())
}

/// The value, or `None` if the store is damaged. Other failures may be temporary, and are returned.
pub(super) fn unless_damaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_damage(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(ObjectError::Unreadable(cause)) => {
            cause.downcast_ref::<StoreError>().is_some_and(is_damage)
        }
        StoreError::Damaged(_) | StoreError::Unavailable(_) => true,
        _ => false,
    }
}
