//! All versions of entries over the history of a thread.
//!
//! Compares each change with the state before it, take by take, so that the cost depends on the changes and not on the
//! length of the takes. Undo, redo and jump lead to states that an earlier change led to.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId};
use retake_model::list::List;
use retake_model::object::load;
use retake_model::operation::Version;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{StoreError, ThreadRow};

use crate::{ReadError, Reader};

/// Operations to read at a time.
const PAGE: usize = 1000;

/// Where a version of an entry first appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstAppearance {
    /// The operation.
    pub at: Version,
    /// The take.
    pub take: TakeId,
    /// The position in the take, counted from 1.
    pub number: u64,
}

/// The history of some entries.
#[derive(Debug, Default)]
pub struct EntryHistory {
    /// All versions that any of them ever had.
    pub versions: BTreeMap<(EntryId, ContentId), FirstAppearance>,
    /// All drafts that any take ever had, with the first operation that stored each.
    pub drafts: BTreeMap<String, Version>,
}

impl EntryHistory {
    /// Reads the log of a thread.
    pub fn of(
        reader: &Reader<'_>,
        thread: &ThreadRow,
        entries: &BTreeSet<EntryId>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, ReadError> {
        let mut past = Self::default();
        let last = thread.summary.version;
        let mut before: Option<ThreadState> = None;
        // Takes return unchanged, so each content is read only once.
        let mut seen: HashSet<ContentId> = HashSet::new();
        let mut next = 1;
        while next <= last {
            let until = (next + PAGE as u64 - 1).min(last);
            let mut page =
                reader.queries().operations_back(thread.number, until, (until - next + 1) as usize)?;
            page.reverse();
            for stored in &page {
                let state: ThreadState = load(&reader.queries(), stored.operation.after)?;
                if !stored.operation.kind.is_not_undoable() {
                    past.record(
                        reader,
                        before.as_ref(),
                        &state,
                        stored.operation.version,
                        entries,
                        &mut seen,
                    )?;
                }
                before = Some(state);
            }
            if page.is_empty() {
                return Err(StoreError::Damaged(format!("operation {next} is missing")).into());
            }
            next = until + 1;
            progress(until, last);
        }
        Ok(past)
    }

    fn record(
        &mut self,
        reader: &Reader<'_>,
        before: Option<&ThreadState>,
        after: &ThreadState,
        version: Version,
        entries: &BTreeSet<EntryId>,
        seen: &mut HashSet<ContentId>,
    ) -> Result<(), ReadError> {
        let queries = reader.queries();
        let known = before.map_or_else(List::empty, |state| state.takes);
        let changed = List::diff(&queries, &known, &after.takes)?;
        for cell in changed.iter().flat_map(|hunk| &hunk.added) {
            if !seen.insert(cell.content) {
                continue;
            }
            let take: Take = load(&queries, cell.content)?;
            if !take.draft.is_empty() {
                self.drafts.entry(take.draft.clone()).or_insert(version);
            }
            for &entry in entries {
                let found = take.entries.find(&queries, entry.bytes())?;
                if let Some((position, cell)) = found {
                    let arrival = FirstAppearance { at: version, take: take.id, number: position + 1 };
                    self.versions.entry((entry, cell.version)).or_insert(arrival);
                }
            }
        }
        Ok(())
    }
}
