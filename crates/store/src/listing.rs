//! The list of threads, kept in memory and brought up to date by the log.
//!
//! Ten thousand rows take longer to read and to sort than somebody who scrolls should wait. So whoever lists often keeps
//! them, in order, and reads again only those that have had an operation since:
//!
//! ```text
//!   kept at sequence 90 ──► operations 91 … 97 are of threads 4 and 9 ──► rows 4 and 9 read ──► kept at 97
//! ```
//!
//! Nothing else changes what a list shows, but for what is recorded as an erasure (a purge, a repair): then all is read
//! anew. So it is if the rows that are kept are not those that the tally knows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use retake_model::id::ThreadId;
use retake_model::time::Timestamp;

use crate::queries::{Queries, UNKNOWN};
use crate::tally;
use crate::threads::{Sieve, ThreadFilter, ThreadRow};
use crate::{Deleted, StoreError};

/// More changed threads than that are read all at once.
const MANY: usize = 1000;

/// Where a thread stands in a list: pinned ones first, then the most lately changed. A higher place comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadPlace {
    /// Whether it stays on top.
    pub pinned: bool,
    /// When it was last changed.
    pub updated: Timestamp,
    /// Its number.
    pub number: i64,
}

/// All threads in the order of a list.
#[derive(Debug, Default)]
pub struct Listing {
    /// How often content had been destroyed when this was read, and how far the log was; `None` if it was not.
    at: Option<(i64, i64)>,
    rows: BTreeMap<Reverse<ThreadPlace>, Listed>,
    places: HashMap<i64, ThreadPlace>,
    numbers: HashMap<ThreadId, i64>,
    /// What the tally of these rows is.
    tally: i64,
}

#[derive(Debug)]
struct Listed {
    row: ThreadRow,
    /// Its title in lower case: what is looked for is compared with each of them.
    title: String,
}

impl ThreadRow {
    /// Where it stands in a list.
    pub fn place(&self) -> ThreadPlace {
        let (pinned, updated) = (self.summary.pinned, self.summary.updated);
        ThreadPlace { pinned, updated, number: self.number }
    }
}

impl Listing {
    /// Brings the list to what a reading sees. Readings must come in the order in which they were begun.
    pub fn refresh(&mut self, queries: &Queries<'_>) -> Result<(), StoreError> {
        let now = (queries.epoch, queries.last_sequence()?);
        let follows = |then: (i64, i64)| then.0 == now.0 && then.0 != UNKNOWN && then.1 <= now.1;
        let Some((_, sequence)) = self.at.take().filter(|then| follows(*then)) else {
            return self.reload(queries, now);
        };
        if sequence < now.1 {
            let changed = queries.threads_changed_since(sequence)?;
            if changed.len() > MANY {
                return self.reload(queries, now);
            }
            for number in changed {
                self.remove(number);
                if let Some(row) = queries.thread_numbered(number)? {
                    self.put(row);
                }
            }
        }
        if !queries.tally_of_threads_is(self.tally)? {
            return self.reload(queries, now);
        }
        self.at = Some(now);
        Ok(())
    }

    /// The threads behind a place (or from the first) that a filter lets through, at most that many; and whether more
    /// follow. The reading must be the one that the list was last brought to.
    pub fn page(
        &self,
        queries: &Queries<'_>,
        filter: &ThreadFilter,
        after: Option<ThreadPlace>,
        limit: usize,
    ) -> Result<(Vec<ThreadRow>, bool), StoreError> {
        let having: Option<BTreeSet<i64>> = match filter.facets.as_slice() {
            [] => None,
            facets => Some(queries.having_all(facets)?),
        };
        let sieve = Sieve::of(filter, queries)?;
        let from = after.map_or(Bound::Unbounded, |place| Bound::Excluded(Reverse(place)));
        let mut found = self
            .rows
            .range((from, Bound::Unbounded))
            .map(|(_, listed)| listed)
            .filter(|listed| having.as_ref().is_none_or(|having| having.contains(&listed.row.number)))
            .filter(|listed| sieve.lets_through_titled(&listed.row, &listed.title));
        let page: Vec<ThreadRow> = found.by_ref().take(limit).map(|listed| listed.row.clone()).collect();
        let more = found.next().is_some();
        Ok((page, more))
    }

    /// A thread by its identity.
    pub fn thread(&self, id: ThreadId) -> Option<&ThreadRow> {
        self.rows.get(&Reverse(*self.places.get(self.numbers.get(&id)?)?)).map(|listed| &listed.row)
    }

    fn reload(&mut self, queries: &Queries<'_>, now: (i64, i64)) -> Result<(), StoreError> {
        *self = Self::default();
        let all = ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() };
        for row in queries.threads(&all)? {
            self.put(row);
        }
        self.at = Some(now);
        Ok(())
    }

    fn put(&mut self, row: ThreadRow) {
        self.tally ^= tally::of_thread(row.number, &row.summary.id.key());
        self.numbers.insert(row.summary.id, row.number);
        self.places.insert(row.number, row.place());
        let title = row.summary.title.to_lowercase();
        self.rows.insert(Reverse(row.place()), Listed { row, title });
    }

    fn remove(&mut self, number: i64) {
        let Some(place) = self.places.remove(&number) else { return };
        if let Some(Listed { row, .. }) = self.rows.remove(&Reverse(place)) {
            self.tally ^= tally::of_thread(row.number, &row.summary.id.key());
            self.numbers.remove(&row.summary.id);
        }
    }
}
