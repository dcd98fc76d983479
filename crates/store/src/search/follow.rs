//! Follows the log: every entry version becomes a doc of the index.
//!
//! The cursor moves in the same transaction as the docs, so a crash or power cut leaves an index that is merely
//! behind. Several processes may index at once: each takes the write lock for one batch, checks whether the cursor is
//! where it left it, and otherwise continues from the new position. Existing docs are skipped, so it does not matter
//! which process indexed what.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::list::EntryCell;
use retake_model::object::load;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::SearchError;
use super::erase::{erase_leftovers, erase_thread, forget};
use super::file::IndexFile;
use super::new_versions::{new_versions, unless_damaged};
use super::segment::segment;
use crate::StoreError;
use crate::location::database;
use crate::log::operations::{RowContent, ScannedRow};
use crate::log::queries::Queries;

/// Operations read from the log at a time: enough for a whole batch.
const PAGE: usize = 8000;
/// Docs and bytes of text per transaction, which bound how long other writers wait.
const MAX_DOCS: u64 = 16_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Fewer rows are indexed without another thread.
const FEW_ROWS: usize = 16;
/// Changes that wait for the indexing thread.
const WAITING_CHANGES: usize = 64;
/// Indexed bytes of an entry. Longer entries are mostly tool output.
const INDEXED_BYTES: usize = 1024 * 1024;

/// The progress of indexing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The sequence number reached.
    pub reached: i64,
    /// The sequence number to reach.
    pub goal: i64,
}

/// The result of catching up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatchUpReport {
    /// Entry versions added.
    pub added: u64,
    /// Entry versions removed, because they were purged or redacted.
    pub removed: u64,
    /// Operations and entries skipped because they cannot be read. `verify` reports them; once they are repaired, the
    /// index must be rebuilt to include them.
    pub unreadable: u64,
}

/// The last indexed operation, by sequence number and id.
pub(super) struct Cursor {
    pub(super) sequence: i64,
    pub(super) operation: Vec<u8>,
    pub(super) leftovers: bool,
}

pub(super) fn cursor(connection: &Connection) -> rusqlite::Result<Cursor> {
    connection.prepare_cached("SELECT sequence, operation, leftovers FROM cursor")?.query_row([], |row| {
        Ok(Cursor { sequence: row.get(0)?, operation: row.get(1)?, leftovers: row.get(2)? })
    })
}

/// Indexes the log up to a read transaction; does nothing if the index is ahead of it.
pub(super) fn follow(
    file: &mut IndexFile,
    reading: &Queries<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CatchUpReport, SearchError> {
    let connection = &mut file.connection;
    let goal = reading.last_sequence()?;
    check_same_store(&file.folder, connection, reading, goal)?;
    let mut caught_up =
        CatchUpReport { removed: forget_redacted(connection, reading)?, ..CatchUpReport::default() };
    loop {
        let reached = cursor(connection)?.sequence;
        if reached >= goal {
            break;
        }
        progress(Progress { reached, goal });
        let page = reading.scan_log(reached, PAGE)?;
        let done = apply(connection, reading, &page, reached)?;
        caught_up.added += done.added;
        caught_up.removed += done.removed;
        caught_up.unreadable += done.unreadable;
    }
    if cursor(connection)?.leftovers {
        erase_leftovers(connection)?;
    }
    progress(Progress { reached: goal, goal });
    Ok(caught_up)
}

/// Refuses an index at an operation that the store does not have: it belongs to another store.
fn check_same_store(
    folder: &Path,
    connection: &Connection,
    reading: &Queries<'_>,
    goal: i64,
) -> Result<(), SearchError> {
    let cursor = cursor(connection)?;
    // An old read transaction may be behind the index. The store itself is behind only if an older copy replaced it.
    if cursor.sequence > goal {
        let newest: i64 = crate::open::connect(&database(folder))?
            .query_row("SELECT coalesce(max(sequence), 0) FROM operation", [], |row| row.get(0))
            .map_err(StoreError::from)?;
        if cursor.sequence > newest {
            return Err(SearchError::OtherStore);
        }
        return Ok(());
    }
    let there: Option<Vec<u8>> = reading
        .connection
        .prepare_cached("SELECT id FROM operation WHERE sequence = ?1")
        .and_then(|mut statement| statement.query_row([cursor.sequence], |row| row.get(0)).optional())
        .map_err(StoreError::from)?;
    // A missing operation proves nothing: a purge may have deleted it.
    match there {
        Some(there) if there != cursor.operation => Err(SearchError::OtherStore),
        _ => Ok(()),
    }
}

/// Removes versions that were redacted since, by any process.
fn forget_redacted(connection: &Connection, reading: &Queries<'_>) -> Result<u64, SearchError> {
    let redacted = redacted_entries(reading)?;
    let mut new = Vec::new();
    for version in redacted {
        if !is_forgotten(connection, version)? {
            new.push(version);
        }
    }
    if new.is_empty() {
        return Ok(0);
    }
    Ok(forget(connection, &new)?)
}

fn redacted_entries(reading: &Queries<'_>) -> Result<Vec<ContentId>, StoreError> {
    let mut statement = reading.connection.prepare_cached("SELECT id FROM redaction WHERE kind = ?1")?;
    let ids = statement.query_map([Kind::Entry as i64], |row| row.get::<_, [u8; 32]>(0))?;
    Ok(ids.map(|id| id.map(ContentId::from_bytes)).collect::<Result<_, _>>()?)
}

fn is_forgotten(connection: &Connection, version: ContentId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM forgotten WHERE version = ?1)")?
        .query_row([version.bytes()], |row| row.get(0))
}

/// What the log brings, in its order.
enum Change {
    /// An entry version that may be new.
    Version { thread: i64, cell: EntryCell, text: Option<Indexed> },
    /// A thread was purged.
    Purge { thread: i64 },
    /// All changes of this row have come.
    End { sequence: i64, operation: Vec<u8> },
}

/// What is indexed of an entry version.
struct Indexed {
    role: String,
    time: i64,
    text: String,
}

/// Indexes rows of the log after `expected`; fewer or none if another process indexes too.
///
/// Reading and segmenting take about as long as indexing. So with many rows, another thread does the latter.
fn apply(
    connection: &mut Connection,
    reading: &Queries<'_>,
    page: &[ScannedRow],
    expected: i64,
) -> Result<CatchUpReport, SearchError> {
    if page.len() < FEW_ROWS {
        let Some(mut indexing) = Indexing::begin(connection, expected)? else {
            return Ok(CatchUpReport::default());
        };
        let unreadable = read_changes(reading, page, &mut |change| indexing.apply(change))?;
        let mut done = indexing.finish()?;
        done.unreadable += unreadable;
        return Ok(done);
    }
    std::thread::scope(|scope| {
        let (sender, changes) = sync_channel(WAITING_CHANGES);
        let indexing = scope.spawn(move || -> Result<CatchUpReport, SearchError> {
            let Some(mut indexing) = Indexing::begin(connection, expected)? else {
                return Ok(CatchUpReport::default());
            };
            for change in changes {
                if indexing.apply(change)? == Going::Stopped {
                    break;
                }
            }
            indexing.finish()
        });
        let read = read_changes(reading, page, &mut |change| {
            // The other thread ends early if another process indexes, or with an error, which it returns.
            Ok(if sender.send(change).is_ok() { Going::On } else { Going::Stopped })
        });
        drop(sender);
        let done = indexing.join().unwrap_or_else(|panic| Err(StoreError::panicked(&*panic).into()));
        let (unreadable, mut done) = (read?, done?);
        done.unreadable += unreadable;
        Ok(done)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Stopped,
}

/// Reads the changes of some rows; returns how many operations could not be read.
fn read_changes(
    reading: &Queries<'_>,
    page: &[ScannedRow],
    each: &mut dyn FnMut(Change) -> Result<Going, SearchError>,
) -> Result<u64, SearchError> {
    let mut unreadable = 0;
    for row in page {
        let cells = match &row.content {
            RowContent::Operation(stored) => {
                unless_damaged(new_versions(reading, row.thread, &stored.operation))?
            }
            RowContent::Purged => {
                if each(Change::Purge { thread: row.thread })? == Going::Stopped {
                    return Ok(unreadable);
                }
                Some(Vec::new())
            }
            RowContent::Damaged => None,
        };
        unreadable += u64::from(cells.is_none());
        for cell in cells.unwrap_or_default() {
            let loaded = load::<EntryVersion>(reading, cell.version).map_err(StoreError::from);
            let text = unless_damaged(loaded)?.map(|version| Indexed {
                role: version.role.to_lowercase(),
                time: version.edited.unwrap_or(version.created).millis(),
                text: segment(&indexed_text(&version)),
            });
            if each(Change::Version { thread: row.thread, cell, text })? == Going::Stopped {
                return Ok(unreadable);
            }
        }
        let end = Change::End { sequence: row.sequence, operation: row.id.clone() };
        if each(end)? == Going::Stopped {
            return Ok(unreadable);
        }
    }
    Ok(unreadable)
}

/// Writes changes to the index, batch by batch.
struct Indexing<'index> {
    connection: &'index Connection,
    /// `None` once another process has moved the cursor.
    batch: Option<Batch<'index>>,
    /// The cursor when the batch began.
    expected: i64,
    /// The last completely indexed row.
    last: Option<(i64, Vec<u8>)>,
    done: CatchUpReport,
}

impl<'index> Indexing<'index> {
    /// Takes the write lock; `None` if another process moved the cursor.
    fn begin(connection: &'index Connection, expected: i64) -> Result<Option<Self>, SearchError> {
        let batch = Batch::begin(connection, expected)?;
        Ok(batch.map(|batch| Self {
            connection,
            batch: Some(batch),
            expected,
            last: None,
            done: CatchUpReport::default(),
        }))
    }

    fn apply(&mut self, change: Change) -> Result<Going, SearchError> {
        if matches!(change, Change::Version { .. }) && self.batch.as_ref().is_some_and(Batch::is_full) {
            // An import may exceed one batch. The cursor stays before this operation until all of it is indexed;
            // indexing it again skips the existing docs.
            self.commit()?;
            self.expected = self.last.take().map_or(self.expected, |(sequence, _)| sequence);
            self.batch = Batch::begin(self.connection, self.expected)?;
        }
        let Some(batch) = &mut self.batch else { return Ok(Going::Stopped) };
        match change {
            Change::Version { thread, cell, text } => {
                if !batch.knows(thread, &cell)? {
                    match text {
                        Some(text) => batch.add(thread, &cell, &text)?,
                        None => self.done.unreadable += 1,
                    }
                }
            }
            Change::Purge { thread } => self.done.removed += erase_thread(&batch.transaction, thread)?,
            Change::End { sequence, operation } => self.last = Some((sequence, operation)),
        }
        Ok(Going::On)
    }

    fn commit(&mut self) -> Result<(), SearchError> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.done.added += batch.docs;
        Ok(batch.commit(self.last.as_ref())?)
    }

    fn finish(mut self) -> Result<CatchUpReport, SearchError> {
        self.commit()?;
        Ok(self.done)
    }
}

/// The indexed text of an entry.
pub(super) fn indexed_text(entry: &EntryVersion) -> String {
    let mut text = entry.searchable_text();
    text.truncate(text.floor_char_boundary(INDEXED_BYTES));
    text
}

/// One transaction of the index.
struct Batch<'index> {
    transaction: Transaction<'index>,
    docs: u64,
    bytes: usize,
    /// The newest time of all docs.
    latest: i64,
}

impl<'index> Batch<'index> {
    /// Takes the write lock; `None` if another process moved the cursor.
    fn begin(connection: &'index Connection, expected: i64) -> Result<Option<Self>, SearchError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let latest = transaction
            .prepare_cached("SELECT latest FROM doc ORDER BY number DESC LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?
            .unwrap_or(i64::MIN);
        let is_next = cursor(&transaction)?.sequence == expected;
        Ok(is_next.then_some(Self { transaction, docs: 0, bytes: 0, latest }))
    }

    /// Whether a version is indexed, or must not be.
    fn knows(&self, thread: i64, cell: &EntryCell) -> rusqlite::Result<bool> {
        self.transaction
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM doc WHERE thread = ?1 AND entry = ?2 AND version = ?3)
                     OR EXISTS (SELECT 1 FROM forgotten WHERE version = ?3)",
            )?
            .query_row(params![thread, cell.entry.bytes(), cell.version.bytes()], |row| row.get(0))
    }

    fn add(&mut self, thread: i64, cell: &EntryCell, indexed: &Indexed) -> rusqlite::Result<()> {
        let (entry, version) = (cell.entry.bytes(), cell.version.bytes());
        self.latest = self.latest.max(indexed.time);
        self.transaction
            .prepare_cached(
                "INSERT INTO doc (thread, entry, version, role, time, latest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![thread, entry, version, indexed.role, indexed.time, self.latest])?;
        self.transaction
            .prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
            .execute(params![self.transaction.last_insert_rowid(), indexed.text])?;
        self.docs += 1;
        self.bytes += indexed.text.len();
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.docs >= MAX_DOCS || self.bytes >= MAX_BYTES
    }

    /// Commits, with the cursor at the last completely indexed row.
    fn commit(self, last: Option<&(i64, Vec<u8>)>) -> rusqlite::Result<()> {
        if let Some((sequence, operation)) = last {
            self.transaction
                .prepare_cached("UPDATE cursor SET sequence = ?1, operation = ?2")?
                .execute(params![sequence, operation])?;
        }
        self.transaction.commit()
    }
}
