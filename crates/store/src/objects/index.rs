//! Finds objects: maps a name prefix to the rows that may contain the object.
//!
//! ```text
//!   object_recent   a few bytes appended for each batch of new objects ─┐
//!                                                         once large    │
//!   object_index    sorted by name: nearly every name has its own page ◄┘
//! ```
//!
//! A process caches the recent names and reads only those added since its last transaction. The cache may contain too
//! many names (of a rolled-back transaction, or names that have moved to the sorted index). That does no harm,
//! because every object is checked against its name. It must never contain too few, so a transaction that sees an
//! older generation of recent names than the cache reads its own.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::log::queries::Queries;
use crate::{StoreError, WriteTransaction};

/// Recent names move to the sorted index when there are more of them than this, or than a share of all names. The
/// larger the index, the more names it takes to put several on each page.
const MIN_RECENT: usize = 2_048;
const RECENT_SHARE: i64 = 16;
const MAX_RECENT: usize = 16_384;
const NAME_BYTES: usize = 8;

/// The recent names visible to a transaction: generation and last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first row. Rows are only removed all at once, so this identifies the generation.
    first: i64,
    last: i64,
}

impl Extent {
    /// The extent visible to a transaction that has just begun.
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        connection
            .prepare_cached(
                "SELECT coalesce((SELECT min(number) FROM object_recent), 0),
                        coalesce((SELECT max(number) FROM object_recent), 0)",
            )?
            .query_row([], |row| Ok(Self { first: row.get(0)?, last: row.get(1)? }))
    }
}

/// Recent names cached by this process.
#[derive(Default)]
pub(crate) struct RecentNames {
    seen: Mutex<CachedNames>,
}

#[derive(Default)]
struct CachedNames {
    extent: Extent,
    names: Names,
}

/// Row numbers by name prefix.
#[derive(Default)]
pub(crate) struct Names {
    newest: HashMap<i64, i64, BuildHasherDefault<IdentityHasher>>,
    /// Older rows with the same prefix; there are hardly any.
    older: Vec<(i64, i64)>,
}

impl Names {
    fn insert(&mut self, prefix: i64, number: i64) {
        if let Some(before) = self.newest.insert(prefix, number)
            && before != number
        {
            self.older.push((prefix, before));
        }
    }

    fn find(&self, prefix: i64, found: &mut Vec<i64>) {
        found.extend(self.newest.get(&prefix));
        found.extend(self.older.iter().filter(|(older, _)| *older == prefix).map(|(_, number)| number));
    }
}

/// Keys are hashes already; hashing them again gains nothing.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_i64(&mut self, value: i64) {
        self.0 = value as u64;
    }
}

impl RecentNames {
    /// Updates the cache to the state of a transaction that has written nothing yet.
    pub(crate) fn refresh(&self, connection: &Connection, extent: Extent) -> rusqlite::Result<()> {
        let mut seen = self.lock();
        if extent.first > seen.extent.first {
            *seen = CachedNames {
                extent: Extent { first: extent.first, last: extent.first - 1 },
                ..CachedNames::default()
            };
        }
        if extent.first == seen.extent.first && extent.last > seen.extent.last {
            let after = seen.extent.last;
            each(connection, after, &mut |prefix, number| seen.names.insert(prefix, number))?;
            seen.extent.last = extent.last;
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        *self.lock() = CachedNames::default();
    }

    fn lock(&self) -> MutexGuard<'_, CachedNames> {
        // A panic while the lock was taken can only have left too few names; the extent is set after them.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes the names of all later rows, with their objects, to `visit`.
fn each(connection: &Connection, after: i64, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT first, names FROM object_recent WHERE number > ?1")?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let first: i64 = row.get(0)?;
        let names = row.get_ref(1)?.as_blob().unwrap_or_default();
        for (place, name) in names.chunks_exact(NAME_BYTES).enumerate() {
            let name: [u8; NAME_BYTES] = name.try_into().expect("chunks have this length");
            visit(i64::from_be_bytes(name), first.saturating_add(place as i64));
        }
    }
    Ok(())
}

/// The index as seen by one transaction.
pub(crate) struct Index {
    extent: Extent,
    /// Read by this transaction where the cache has another generation.
    own: OnceCell<Names>,
}

impl Index {
    pub(crate) fn at(extent: Extent) -> Self {
        Self { extent, own: OnceCell::new() }
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexPart {
    Recent,
    Sorted,
}

impl Queries<'_> {
    /// Rows that may contain an object with this name prefix.
    pub(crate) fn rows_with_prefix(&self, prefix: i64, part: IndexPart) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        match part {
            IndexPart::Recent => self.recent_rows_with_prefix(prefix, &mut found)?,
            IndexPart::Sorted => {
                let mut statement =
                    self.connection.prepare_cached("SELECT number FROM object_index WHERE prefix = ?1")?;
                let mut rows = statement.query([prefix])?;
                while let Some(row) = rows.next()? {
                    found.push(row.get(0)?);
                }
            }
        }
        Ok(found)
    }

    /// The rows of all parts of the index, without duplicates.
    pub(crate) fn all_rows_with_prefix(&self, prefix: i64) -> Result<BTreeSet<i64>, StoreError> {
        let recent = self.rows_with_prefix(prefix, IndexPart::Recent)?;
        Ok(recent.into_iter().chain(self.rows_with_prefix(prefix, IndexPart::Sorted)?).collect())
    }

    fn recent_rows_with_prefix(&self, prefix: i64, found: &mut Vec<i64>) -> Result<(), StoreError> {
        let covered = {
            let seen = self.cache.recent.lock();
            seen.names.find(prefix, found);
            seen.extent.first == self.index.extent.first && seen.extent.last >= self.index.extent.last
        };
        if !covered {
            self.read_recent_names()?.find(prefix, found);
        }
        Ok(())
    }

    /// Reads the recent rows from the table, bypassing the cache: another process may have replaced the database by a
    /// repaired one.
    pub(crate) fn recent_rows_on_disk(&self, prefix: i64) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        self.read_recent_names()?.find(prefix, &mut found);
        Ok(found)
    }

    /// The recent names as read by this transaction.
    fn read_recent_names(&self) -> Result<&Names, StoreError> {
        if self.index.own.get().is_none() {
            let mut names = Names::default();
            each(self.connection, i64::MIN, &mut |prefix, number| names.insert(prefix, number))?;
            let _ = self.index.own.set(names);
        }
        Ok(self.index.own.get().expect("set above"))
    }

    /// Passes every name in the index, with its row, to `visit`.
    pub(crate) fn for_each_name(&self, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("SELECT prefix, number FROM object_index")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?);
        }
        each(self.connection, i64::MIN, visit)
    }
}

impl WriteTransaction<'_> {
    /// Indexes objects that were just stored, in row order.
    pub(crate) fn index_objects(&self, stored: &[(i64, i64)]) -> Result<(), StoreError> {
        let Some(&(_, last)) = stored.last() else { return Ok(()) };
        for batch in stored.chunk_by(|(_, before), (_, after)| before + 1 == *after) {
            let names: Vec<u8> = batch.iter().flat_map(|(prefix, _)| prefix.to_be_bytes()).collect();
            self.connection
                .prepare_cached("INSERT INTO object_recent (first, names) VALUES (?1, ?2)")?
                .execute(params![batch[0].1, names])?;
        }
        let many = {
            let mut seen = self.cache.recent.lock();
            for &(prefix, number) in stored {
                seen.names.insert(prefix, number);
            }
            seen.names.newest.len()
                > usize::try_from(last / RECENT_SHARE).unwrap_or(0).clamp(MIN_RECENT, MAX_RECENT)
        };
        if many { self.sort_recent() } else { Ok(()) }
    }

    pub(crate) fn sort_recent(&self) -> Result<(), StoreError> {
        let last: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(number) FROM object_recent")?
            .query_row([], |row| row.get(0))
            .optional()?
            .flatten();
        let Some(last) = last else { return Ok(()) };
        let mut names = Vec::new();
        each(self.connection, i64::MIN, &mut |prefix, number| names.push((prefix, number)))?;
        if names.is_empty() {
            return Ok(());
        }
        names.sort_unstable();
        let mut statement = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO object_index (prefix, number) VALUES (?1, ?2)")?;
        for (prefix, number) in names {
            statement.execute([prefix, number])?;
        }
        self.clear_recent(last)
    }

    /// Empties the table of recent names, and keeps its last row number in use.
    fn clear_recent(&self, last: i64) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM object_recent", [])?;
        self.connection.execute(
            "INSERT INTO object_recent (number, first, names) VALUES (?1, 0, x'')",
            [last.saturating_add(1)],
        )?;
        Ok(())
    }
}
