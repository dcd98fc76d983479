//! How entries are displayed, stored outside history.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::id::EntryId;
use rusqlite::{OptionalExtension, params};

use crate::queries::{Queries, UNKNOWN};
use crate::tally::{self, Searched, Tally};
use crate::threads::key_of;
use crate::{StoreError, Writing};

/// How one entry is displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    pub collapsed: bool,
    /// As editable source instead of rendered Markdown.
    pub source: bool,
}

/// The presentations of recently viewed threads, each with its row checksum.
#[derive(Default)]
pub(crate) struct ShownLately(Mutex<VecDeque<Kept>>);

struct Kept {
    epoch: i64,
    thread: i64,
    tally: i64,
    shown: Arc<HashMap<EntryId, Shown>>,
}

/// The number of threads that a user switches between.
const FEW: usize = 8;

impl ShownLately {
    fn get(&self, epoch: i64, thread: i64, tally: i64) -> Option<Arc<HashMap<EntryId, Shown>>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            kept.iter().find(|kept| (kept.epoch, kept.thread, kept.tally) == (epoch, thread, tally))?;
        Some(Arc::clone(&found.shown))
    }

    fn put(&self, epoch: i64, thread: i64, tally: i64, shown: Arc<HashMap<EntryId, Shown>>) {
        // Most threads have none, which is as fast to read as to cache.
        if shown.is_empty() || epoch == UNKNOWN {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.thread != thread);
        kept.truncate(FEW - 1);
        kept.push_front(Kept { epoch, thread, tally, shown });
    }
}

impl Shown {
    fn to_bits(self) -> i64 {
        i64::from(self.collapsed) | i64::from(self.source) << 1
    }

    fn from_bits(bits: i64) -> Self {
        Self { collapsed: bits & 1 != 0, source: bits & 2 != 0 }
    }
}

impl Queries<'_> {
    /// The entries of a thread with a non-default presentation.
    pub fn shown(&self, thread: i64) -> Result<HashMap<EntryId, Shown>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT entry, shown FROM presentation WHERE thread = ?1")?;
        let mut rows = statement.query([thread])?;
        let mut found = HashMap::new();
        let mut hashes = Vec::new();
        while let Some(row) = rows.next()? {
            let (entry, bits): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
            hashes.push(tally::of_shown(&entry, bits));
            if let Some(key) = key_of(&entry) {
                found.insert(EntryId::from_key(key), Shown::from_bits(bits));
            }
        }
        self.check_tally(Tally::ShownOfThread, &Searched::Number(thread), hashes)?;
        Ok(found)
    }

    /// The same, cached until something changes: every entry of a long thread may be collapsed, and is displayed page
    /// by page.
    pub fn shown_lately(&self, thread: i64) -> Result<Arc<HashMap<EntryId, Shown>>, StoreError> {
        let tally = self.tally_of(Tally::ShownOfThread, &Searched::Number(thread))?;
        if let Some(kept) = self.cache.shown.get(self.epoch, thread, tally) {
            return Ok(kept);
        }
        let shown = Arc::new(self.shown(thread)?);
        self.cache.shown.put(self.epoch, thread, tally, Arc::clone(&shown));
        Ok(shown)
    }
}

impl Writing<'_> {
    /// Sets how entries are displayed.
    pub fn set_shown(&self, thread: i64, entries: &[EntryId], shown: Shown) -> Result<(), StoreError> {
        for entry in entries {
            self.tally_shown(thread, *entry)?;
            if shown == Shown::default() {
                self.connection
                    .prepare_cached("DELETE FROM presentation WHERE thread = ?1 AND entry = ?2")?
                    .execute(params![thread, entry.key()])?;
            } else {
                self.connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO presentation (thread, entry, shown) VALUES (?1, ?2, ?3)",
                    )?
                    .execute(params![thread, entry.key(), shown.to_bits()])?;
            }
            self.tally_shown(thread, *entry)?;
        }
        Ok(())
    }

    /// Adds a row to the checksum, or removes it before it changes.
    fn tally_shown(&self, thread: i64, entry: EntryId) -> Result<(), StoreError> {
        let shown: Option<i64> = self
            .connection
            .prepare_cached("SELECT shown FROM presentation WHERE thread = ?1 AND entry = ?2")?
            .query_row(params![thread, entry.key()], |row| row.get(0))
            .optional()?;
        let Some(shown) = shown else { return Ok(()) };
        let hash = tally::of_shown(&entry.key(), shown);
        self.tally(Tally::ShownOfThread, &Searched::Number(thread), hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn cached_presentations_are_never_stale() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (here, there) =
            (Store::open(folder.path()).expect("a store"), Store::open(folder.path()).expect("a store"));
        let entry = |number: u8| EntryId::from_bytes([number; 16]);
        let check = |thread: i64, number: u8, collapsed: bool| {
            let shown = Shown { collapsed, source: false };
            there
                .write(move |writing| writing.set_shown(thread, &[entry(number)], shown))
                .expect("a write");
            for _ in 0..2 {
                let reading = here.read().expect("a read transaction");
                let queries = reading.queries();
                let lately = queries.shown_lately(thread).expect("presentations");
                assert_eq!(*lately, queries.shown(thread).expect("presentations"));
                assert_eq!(lately.get(&entry(number)).is_some_and(|shown| shown.collapsed), collapsed);
            }
        };
        check(1, 1, true);
        check(1, 2, true);
        check(2, 1, true);
        check(1, 1, false);
        check(1, 1, true);
        for thread in 3..20 {
            check(thread, 1, true);
        }
        check(1, 2, false);
        check(2, 1, false);
    }
}
