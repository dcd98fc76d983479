//! Finds objects: maps a name prefix to the places that may contain the object. A place is the number of an object's own
//! row, or the negative sequence number of the operation whose bundle contains it.
//!
//! ```text
//!   operation.bundle   names in the header of each bundle ─────┐
//!                                              every 64        │
//!   object_recent      names in order of arrival, many in a row ◄┐
//!                                              once large        │
//!   object_index       sorted by name: nearly every name has its own page ◄┘
//! ```
//!
//! A process caches the recent names and reads only those added since its last transaction. The cache may contain too
//! many names (of a rolled-back transaction, or names that have moved to the sorted index). That does no harm,
//! because every object is checked against its name. It must never contain too few, so a transaction that sees an
//! older generation of recent names than the cache reads its own.
//!
//! A damaged page of the log hides the names in its bundles, and no others: lookups read around it. Names are moved only
//! when all of them can be read. A change that needs the damaged page itself still fails until a repair.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, params};

use crate::log::queries::Queries;
use crate::maintenance::scan::{BUNDLES, scan_after};
use crate::objects::bundle::names_in;
use crate::{StoreError, WriteTransaction};

/// Recent names move to the sorted index when there are more of them than this, or than a share of all names. The
/// larger the index, the more names it takes to put several on each page.
const MIN_RECENT: usize = 2_048;
const RECENT_SHARE: i64 = 16;
const MAX_RECENT: usize = 16_384;
const NAME_BYTES: usize = 8;
/// A name in a bundle: its prefix, and how far its operation lies before that of the row.
const BUNDLED_NAME_BYTES: usize = NAME_BYTES + 4;
/// The names of so many operations go into one row, so that a new process need not read their bundles.
const OPERATIONS_OF_A_ROW: i64 = 64;
/// Estimates the number of objects from that of operations.
const OBJECTS_OF_AN_OPERATION: i64 = 8;

/// The recent names visible to a transaction: generation, last row and last operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first row. Rows are only removed all at once, so this identifies the generation.
    first: i64,
    last: i64,
    sequence: i64,
}

impl Extent {
    /// The extent visible to a transaction that has just begun.
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        connection
            .prepare_cached(
                "SELECT coalesce((SELECT min(number) FROM object_recent), 0),
                        coalesce((SELECT max(number) FROM object_recent), 0),
                        coalesce((SELECT max(sequence) FROM operation), 0)",
            )?
            .query_row([], |row| Ok(Self { first: row.get(0)?, last: row.get(1)?, sequence: row.get(2)? }))
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
    /// The last operation whose names are in a row, or sorted.
    covered: i64,
    names: Names,
}

/// Places by name prefix.
#[derive(Default)]
pub(crate) struct Names {
    newest: HashMap<i64, i64, BuildHasherDefault<IdentityHasher>>,
    /// Older places with the same prefix; there are hardly any.
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
    pub(crate) fn refresh(&self, connection: &Connection, extent: Extent) -> Result<(), StoreError> {
        let mut seen = self.lock();
        if extent.first > seen.extent.first {
            *seen = CachedNames {
                extent: Extent { first: extent.first, last: extent.first - 1, sequence: 0 },
                ..CachedNames::default()
            };
        }
        if extent.first != seen.extent.first {
            return Ok(());
        }
        let CachedNames { extent: known, covered, names } = &mut *seen;
        if extent.last > known.last {
            let last = each_row(connection, known.last, &mut |prefix, place| names.insert(prefix, place))?;
            *covered = last.max(*covered);
            known.last = extent.last;
        }
        if extent.sequence > known.sequence {
            let after = known.sequence.max(*covered);
            each_readable_bundle(connection, after, &mut |prefix, place| names.insert(prefix, place))?;
            known.sequence = extent.sequence;
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

/// Passes all recent names, with their places, to `visit`.
fn each(connection: &Connection, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<()> {
    let covered = each_row(connection, i64::MIN, visit)?;
    each_bundle(connection, covered, visit)
}

/// Passes the names of all later rows to `visit`. Returns the last operation that they cover.
fn each_row(connection: &Connection, after: i64, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<i64> {
    let mut statement =
        connection.prepare_cached("SELECT first, names FROM object_recent WHERE number > ?1")?;
    let mut rows = statement.query([after])?;
    let mut covered = 0;
    while let Some(row) = rows.next()? {
        let first: i64 = row.get(0)?;
        let names = row.get_ref(1)?.as_blob().unwrap_or_default();
        if first < 0 {
            covered = covered.max(first.saturating_neg());
            for (name, back) in names.chunks_exact(BUNDLED_NAME_BYTES).map(|name| name.split_at(NAME_BYTES)) {
                let back = u32::from_be_bytes(back.try_into().expect("the rest has this length"));
                visit(prefix_of(name), first.saturating_add(i64::from(back)));
            }
            continue;
        }
        for (position, name) in names.chunks_exact(NAME_BYTES).enumerate() {
            visit(prefix_of(name), first.saturating_add(position as i64));
        }
    }
    Ok(covered)
}

/// The same, without those that damage hides.
fn each_readable(connection: &Connection, visit: &mut dyn FnMut(i64, i64)) -> Result<(), StoreError> {
    let covered = each_row(connection, i64::MIN, visit)?;
    each_readable_bundle(connection, covered, visit)
}

/// Passes the names in the readable bundles of all later operations to `visit`.
fn each_readable_bundle(
    connection: &Connection,
    after: i64,
    visit: &mut dyn FnMut(i64, i64),
) -> Result<(), StoreError> {
    scan_after(connection, BUNDLES, after, &mut |row| {
        let sequence: i64 = row.get(0)?;
        for name in names_in(row.get_ref(1)?.as_blob().unwrap_or_default()) {
            visit(name, sequence.saturating_neg());
        }
        Ok(())
    })?;
    Ok(())
}

/// Passes the names in the bundles of all later operations to `visit`.
fn each_bundle(connection: &Connection, after: i64, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT sequence, bundle FROM operation WHERE sequence > ?1 AND bundle IS NOT NULL",
    )?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let sequence: i64 = row.get(0)?;
        for name in names_in(row.get_ref(1)?.as_blob().unwrap_or_default()) {
            visit(name, sequence.saturating_neg());
        }
    }
    Ok(())
}

/// Names stay where they are if a damaged page hides some of them, so that this alone makes no change fail.
fn unless_damaged(moved: Result<(), StoreError>) -> Result<(), StoreError> {
    // After a failed read, SQLite may have rolled the transaction back: only damage is passed over.
    match moved {
        Err(StoreError::Damaged(_)) => Ok(()),
        moved => moved,
    }
}

fn prefix_of(name: &[u8]) -> i64 {
    i64::from_be_bytes(name.try_into().expect("names have this length"))
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
            let (seen, own) = (seen.extent, self.index.extent);
            seen.first == own.first && seen.last >= own.last && seen.sequence >= own.sequence
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
            each_readable(self.connection, &mut |prefix, place| names.insert(prefix, place))?;
            let _ = self.index.own.set(names);
        }
        Ok(self.index.own.get().expect("set above"))
    }

    /// Passes every name in the index, with its place, to `visit`.
    pub(crate) fn for_each_name(&self, visit: &mut dyn FnMut(i64, i64)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("SELECT prefix, number FROM object_index")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?);
        }
        each(self.connection, visit)
    }

    /// The number of names that are not sorted yet.
    pub(crate) fn recent_name_count(&self) -> rusqlite::Result<u64> {
        let mut count = 0;
        each(self.connection, &mut |_, _| count += 1)?;
        Ok(count)
    }
}

impl WriteTransaction<'_> {
    /// Indexes objects that were just stored in rows of their own, in row order.
    pub(crate) fn index_objects(&self, stored: &[(i64, i64)]) -> Result<(), StoreError> {
        if stored.is_empty() {
            return Ok(());
        }
        for batch in stored.chunk_by(|(_, before), (_, after)| before + 1 == *after) {
            let names: Vec<u8> = batch.iter().flat_map(|(prefix, _)| prefix.to_be_bytes()).collect();
            self.put_recent(batch[0].1, &names)?;
        }
        if self.add_recent(stored.iter().copied())? { unless_damaged(self.sort_recent()) } else { Ok(()) }
    }

    /// Indexes the bundle of an operation that was just stored. Its names are in its header already.
    pub(crate) fn index_bundle(
        &self,
        sequence: i64,
        names: impl Iterator<Item = i64>,
    ) -> Result<(), StoreError> {
        if self.add_recent(names.map(|name| (name, -sequence)))? {
            return unless_damaged(self.sort_recent());
        }
        let uncovered = sequence - self.cache.recent.lock().covered;
        if uncovered < OPERATIONS_OF_A_ROW { Ok(()) } else { unless_damaged(self.gather_bundles(sequence)) }
    }

    /// Adds names to the cache; returns whether there are so many that they should be sorted.
    fn add_recent(&self, stored: impl Iterator<Item = (i64, i64)>) -> Result<bool, StoreError> {
        let count = {
            let mut seen = self.cache.recent.lock();
            stored.for_each(|(prefix, place)| seen.names.insert(prefix, place));
            seen.names.newest.len()
        };
        if count <= MIN_RECENT {
            return Ok(false);
        }
        let (rows, operations): (i64, i64) = self
            .connection
            .prepare_cached(
                "SELECT coalesce((SELECT max(number) FROM object), 0),
                        coalesce((SELECT max(sequence) FROM operation), 0)",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let objects = operations.saturating_mul(OBJECTS_OF_AN_OPERATION).saturating_add(rows);
        let limit = usize::try_from(objects / RECENT_SHARE).unwrap_or(0).clamp(MIN_RECENT, MAX_RECENT);
        Ok(count > limit)
    }

    /// Copies the names of the last bundles into one row. Reads all of them before it writes.
    fn gather_bundles(&self, last: i64) -> Result<(), StoreError> {
        let covered: i64 = self
            .connection
            .prepare_cached("SELECT max(0, -coalesce(min(first), 0)) FROM object_recent")?
            .query_row([], |row| row.get(0))?;
        // Another change of this transaction may have done it.
        if last - covered < OPERATIONS_OF_A_ROW {
            return Ok(());
        }
        let mut names = Vec::new();
        each_bundle(self.connection, covered, &mut |prefix, place| {
            names.extend(prefix.to_be_bytes());
            names.extend(u32::try_from(last + place).unwrap_or_default().to_be_bytes());
        })?;
        self.put_recent(-last, &names)
    }

    fn put_recent(&self, first: i64, names: &[u8]) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT INTO object_recent (first, names) VALUES (?1, ?2)")?
            .execute(params![first, names])?;
        Ok(())
    }

    /// Moves all names to the sorted index. Reads all of them before it writes.
    pub(crate) fn sort_recent(&self) -> Result<(), StoreError> {
        let mut names = Vec::new();
        each(self.connection, &mut |prefix, place| names.push((prefix, place)))?;
        if names.is_empty() {
            return Ok(());
        }
        names.sort_unstable();
        let mut statement = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO object_index (prefix, number) VALUES (?1, ?2)")?;
        for (prefix, place) in names {
            statement.execute([prefix, place])?;
        }
        // The last row number stays in use, and the row says which bundles are sorted.
        let (last, sequence): (i64, i64) = self
            .connection
            .prepare_cached(
                "SELECT coalesce((SELECT max(number) FROM object_recent), 0),
                        coalesce((SELECT max(sequence) FROM operation), 0)",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.connection.execute("DELETE FROM object_recent", [])?;
        self.connection.execute(
            "INSERT INTO object_recent (number, first, names) VALUES (?1, ?2, x'')",
            [last.saturating_add(1), -sequence],
        )?;
        Ok(())
    }
}
