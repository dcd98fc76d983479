//! The list of threads, cached in memory and updated from the log.
//!
//! Reading and sorting ten thousand rows is too slow for scrolling. So callers that list often keep the sorted rows,
//! and read only rows of threads with new operations:
//!
//! ```text
//!   cached at sequence 90 ──► operations 91 … 97 are of threads 4 and 9 ──► read rows 4 and 9 ──► cached at 97
//! ```
//!
//! Only an erasure (a purge, a repair) changes a list otherwise; then all rows are read again. The same happens if the cached rows do not match their row checksum.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use retake_model::id::ThreadId;
use retake_model::time::Timestamp;

use crate::log::queries::{Queries, UNKNOWN_EPOCH};
use crate::tables::row_checksums;
use crate::tables::threads::{ThreadFilter, ThreadMatcher, ThreadRow};
use crate::{DeletedFilter, StoreError};

/// If more threads changed than this, all rows are read again.
const RELOAD_THRESHOLD: usize = 1000;

/// The sort key of a thread: pinned threads first, then the most recently changed. A greater position comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    pub pinned: bool,
    pub updated: Timestamp,
    pub number: i64,
}

/// All threads in list order.
#[derive(Debug, Default)]
pub struct ThreadList {
    /// The erasure count and the end of the log when the rows were read; `None` before the first read.
    at: Option<(i64, i64)>,
    rows: BTreeMap<Reverse<ListPosition>, ListedThread>,
    places: HashMap<i64, ListPosition>,
    numbers: HashMap<ThreadId, i64>,
    /// The combined checksum of these rows.
    checksum: i64,
}

#[derive(Debug)]
struct ListedThread {
    row: ThreadRow,
    /// The title in lower case, for filtering.
    title: String,
}

impl ThreadRow {
    /// Its position in a list.
    pub fn list_position(&self) -> ListPosition {
        let (pinned, updated) = (self.summary.pinned, self.summary.updated);
        ListPosition { pinned, updated, number: self.number }
    }
}

impl ThreadList {
    /// Updates the list to a read transaction. Transactions must be passed in the order in which they began.
    pub fn refresh(&mut self, queries: &Queries<'_>) -> Result<(), StoreError> {
        let now = (queries.epoch, queries.last_sequence()?);
        let follows = |then: (i64, i64)| then.0 == now.0 && then.0 != UNKNOWN_EPOCH && then.1 <= now.1;
        let Some((_, sequence)) = self.at.take().filter(|then| follows(*then)) else {
            return self.reload(queries, now);
        };
        if sequence < now.1 {
            let changed = queries.threads_changed_since(sequence)?;
            if changed.len() > RELOAD_THRESHOLD {
                return self.reload(queries, now);
            }
            for number in changed {
                self.remove(number);
                if let Some(row) = queries.thread_by_number(number)? {
                    self.put(row);
                }
            }
        }
        if !queries.matches_thread_checksum(self.checksum)? {
            return self.reload(queries, now);
        }
        self.at = Some(now);
        Ok(())
    }

    /// Up to `limit` threads after a position (or from the start) that match a filter, and whether more follow.
    /// `queries` must be of the transaction of the last refresh.
    pub fn page(
        &self,
        queries: &Queries<'_>,
        filter: &ThreadFilter,
        after: Option<ListPosition>,
        limit: usize,
    ) -> Result<(Vec<ThreadRow>, bool), StoreError> {
        let having: Option<BTreeSet<i64>> = match filter.facets.as_slice() {
            [] => None,
            facets => Some(queries.threads_with_facets(facets)?),
        };
        let matcher = ThreadMatcher::of(filter, queries)?;
        let from = after.map_or(Bound::Unbounded, |place| Bound::Excluded(Reverse(place)));
        let mut found = self
            .rows
            .range((from, Bound::Unbounded))
            .map(|(_, listed)| listed)
            .filter(|listed| having.as_ref().is_none_or(|having| having.contains(&listed.row.number)))
            .filter(|listed| matcher.matches_with_title(&listed.row, &listed.title));
        let page: Vec<ThreadRow> = found.by_ref().take(limit).map(|listed| listed.row.clone()).collect();
        let more = found.next().is_some();
        Ok((page, more))
    }

    pub fn thread(&self, id: ThreadId) -> Option<&ThreadRow> {
        self.rows.get(&Reverse(*self.places.get(self.numbers.get(&id)?)?)).map(|listed| &listed.row)
    }

    fn reload(&mut self, queries: &Queries<'_>, now: (i64, i64)) -> Result<(), StoreError> {
        *self = Self::default();
        let all = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        for row in queries.threads(&all)? {
            self.put(row);
        }
        self.at = Some(now);
        Ok(())
    }

    fn put(&mut self, row: ThreadRow) {
        self.checksum ^= row_checksums::hash_thread(row.number, &row.summary.id.key());
        self.numbers.insert(row.summary.id, row.number);
        self.places.insert(row.number, row.list_position());
        let title = row.summary.title.to_lowercase();
        self.rows.insert(Reverse(row.list_position()), ListedThread { row, title });
    }

    fn remove(&mut self, number: i64) {
        let Some(place) = self.places.remove(&number) else { return };
        if let Some(ListedThread { row, .. }) = self.rows.remove(&Reverse(place)) {
            self.checksum ^= row_checksums::hash_thread(row.number, &row.summary.id.key());
            self.numbers.remove(&row.summary.id);
        }
    }
}
