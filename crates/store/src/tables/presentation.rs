//! How entries are displayed, stored outside history.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::id::EntryId;
use rusqlite::{OptionalExtension, params};

use crate::log::queries::{Queries, UNKNOWN_EPOCH};
use crate::tables::row_checksums::{self, ChecksumKind, LookupValue};
use crate::tables::threads::key_of;
use crate::{StoreError, WriteTransaction};

/// How one entry is displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryPresentation {
    pub collapsed: bool,
    /// As editable source instead of rendered Markdown.
    pub source: bool,
}

/// The presentations of recently viewed threads, each with its row checksum.
#[derive(Default)]
pub(crate) struct PresentationCache(Mutex<VecDeque<CachedPresentations>>);

struct CachedPresentations {
    epoch: i64,
    thread: i64,
    checksum: i64,
    shown: Arc<HashMap<EntryId, EntryPresentation>>,
}

/// The number of threads that a user switches between.
const CACHED_THREADS: usize = 8;

impl PresentationCache {
    fn get(
        &self,
        epoch: i64,
        thread: i64,
        checksum: i64,
    ) -> Option<Arc<HashMap<EntryId, EntryPresentation>>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            kept.iter().find(|kept| (kept.epoch, kept.thread, kept.checksum) == (epoch, thread, checksum))?;
        Some(Arc::clone(&found.shown))
    }

    fn put(&self, epoch: i64, thread: i64, checksum: i64, shown: Arc<HashMap<EntryId, EntryPresentation>>) {
        // Most threads have none, which is as fast to read as to cache.
        if shown.is_empty() || epoch == UNKNOWN_EPOCH {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.thread != thread);
        kept.truncate(CACHED_THREADS - 1);
        kept.push_front(CachedPresentations { epoch, thread, checksum, shown });
    }
}

impl EntryPresentation {
    fn to_bits(self) -> i64 {
        i64::from(self.collapsed) | i64::from(self.source) << 1
    }

    fn from_bits(bits: i64) -> Self {
        Self { collapsed: bits & 1 != 0, source: bits & 2 != 0 }
    }
}

impl Queries<'_> {
    /// The entries of a thread with a non-default presentation.
    pub fn presentations(&self, thread: i64) -> Result<HashMap<EntryId, EntryPresentation>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT entry, shown FROM presentation WHERE thread = ?1")?;
        let mut rows = statement.query([thread])?;
        let mut found = HashMap::new();
        let mut hashes = Vec::new();
        while let Some(row) = rows.next()? {
            let (entry, bits): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
            hashes.push(row_checksums::hash_presentation(&entry, bits));
            if let Some(key) = key_of(&entry) {
                found.insert(EntryId::from_key(key), EntryPresentation::from_bits(bits));
            }
        }
        self.check_row_checksum(ChecksumKind::PresentationsOfThread, &LookupValue::Number(thread), hashes)?;
        Ok(found)
    }

    /// The same, cached until something changes: every entry of a long thread may be collapsed, and is displayed page
    /// by page.
    pub fn cached_presentations(
        &self,
        thread: i64,
    ) -> Result<Arc<HashMap<EntryId, EntryPresentation>>, StoreError> {
        let checksum =
            self.row_checksum(ChecksumKind::PresentationsOfThread, &LookupValue::Number(thread))?;
        if let Some(kept) = self.cache.shown.get(self.epoch, thread, checksum) {
            return Ok(kept);
        }
        let shown = Arc::new(self.presentations(thread)?);
        self.cache.shown.put(self.epoch, thread, checksum, Arc::clone(&shown));
        Ok(shown)
    }
}

impl WriteTransaction<'_> {
    /// Sets how entries are displayed.
    pub fn set_presentation(
        &self,
        thread: i64,
        entries: &[EntryId],
        shown: EntryPresentation,
    ) -> Result<(), StoreError> {
        for entry in entries {
            self.toggle_presentation_checksum(thread, *entry)?;
            if shown == EntryPresentation::default() {
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
            self.toggle_presentation_checksum(thread, *entry)?;
        }
        Ok(())
    }

    /// Adds a row to the checksum, or removes it before it changes.
    fn toggle_presentation_checksum(&self, thread: i64, entry: EntryId) -> Result<(), StoreError> {
        let shown: Option<i64> = self
            .connection
            .prepare_cached("SELECT shown FROM presentation WHERE thread = ?1 AND entry = ?2")?
            .query_row(params![thread, entry.key()], |row| row.get(0))
            .optional()?;
        let Some(shown) = shown else { return Ok(()) };
        let hash = row_checksums::hash_presentation(&entry.key(), shown);
        self.toggle_row_checksum(ChecksumKind::PresentationsOfThread, &LookupValue::Number(thread), hash)
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
            let shown = EntryPresentation { collapsed, source: false };
            there
                .write(move |writing| writing.set_presentation(thread, &[entry(number)], shown))
                .expect("a write");
            for _ in 0..2 {
                let reading = here.read().expect("a read transaction");
                let queries = reading.queries();
                let lately = queries.cached_presentations(thread).expect("presentations");
                assert_eq!(*lately, queries.presentations(thread).expect("presentations"));
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
