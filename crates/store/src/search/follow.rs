//! Follows the log: every entry version becomes a doc of the index.
//!
//! The cursor moves in the same transaction as the docs, so a crash or power cut leaves an index that is merely
//! behind. Several processes may index at once: each takes the write lock for one batch, checks whether the cursor is
//! where it left it, and otherwise continues from the new position. Existing docs are skipped, so it does not matter
//! which process indexed what.

use std::path::Path;

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

/// Operations read from the log at a time.
const PAGE: usize = 2000;
/// Docs and bytes of text per transaction, which bound how long other writers wait.
const MAX_DOCS: u64 = 2000;
const MAX_BYTES: usize = 32 * 1024 * 1024;
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
    file: &IndexFile,
    reading: &Queries<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CatchUpReport, SearchError> {
    let connection = &file.connection;
    let goal = reading.last_sequence()?;
    check_same_store(&file.folder, connection, reading, goal)?;
    let mut following = CatchUp { connection, reading, caught_up: CatchUpReport::default() };
    following.caught_up.removed += forget_redacted(connection, reading)?;
    loop {
        let reached = cursor(connection)?.sequence;
        if reached >= goal {
            break;
        }
        progress(Progress { reached, goal });
        let page = reading.scan_log(reached, PAGE)?;
        following.apply(&page, reached)?;
    }
    if cursor(connection)?.leftovers {
        erase_leftovers(connection)?;
    }
    progress(Progress { reached: goal, goal });
    Ok(following.caught_up)
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

struct CatchUp<'index, 'reading> {
    connection: &'index Connection,
    reading: &'index Queries<'reading>,
    caught_up: CatchUpReport,
}

impl<'index> CatchUp<'index, '_> {
    /// Indexes rows of the log after `expected`; fewer or none if another process indexes too.
    fn apply(&mut self, page: &[ScannedRow], expected: i64) -> Result<(), SearchError> {
        let mut expected = expected;
        let mut last: Option<&ScannedRow> = None;
        let Some(mut batch) = self.begin(expected)? else {
            return Ok(());
        };
        for row in page {
            for cell in self.new_versions(&batch.transaction, row)? {
                if batch.is_full() {
                    // An import may exceed one batch. The cursor stays before this operation until all of it is
                    // indexed; indexing it again skips the existing docs.
                    batch.commit(last)?;
                    expected = last.map_or(expected, |row| row.sequence);
                    let Some(next) = self.begin(expected)? else {
                        return Ok(());
                    };
                    batch = next;
                }
                self.add(&mut batch, row.thread, &cell)?;
            }
            last = Some(row);
        }
        batch.commit(last)?;
        Ok(())
    }

    /// Takes the write lock; `None` if another process moved the cursor.
    fn begin(&self, expected: i64) -> Result<Option<Batch<'index>>, SearchError> {
        let transaction = Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate)?;
        Ok((cursor(&transaction)?.sequence == expected).then_some(Batch { transaction, docs: 0, bytes: 0 }))
    }

    fn new_versions(
        &mut self,
        transaction: &Connection,
        row: &ScannedRow,
    ) -> Result<Vec<EntryCell>, SearchError> {
        let cells = match &row.content {
            RowContent::Operation(stored) => {
                unless_damaged(new_versions(self.reading, row.thread, &stored.operation))?
            }
            RowContent::Purged => {
                self.caught_up.removed += erase_thread(transaction, row.thread)?;
                Some(Vec::new())
            }
            RowContent::Damaged => None,
        };
        Ok(cells.unwrap_or_else(|| {
            self.caught_up.unreadable += 1;
            Vec::new()
        }))
    }

    fn add(&mut self, batch: &mut Batch<'_>, thread: i64, cell: &EntryCell) -> Result<(), SearchError> {
        let connection = &batch.transaction;
        let (entry, version) = (cell.entry.bytes(), cell.version.bytes());
        let known: bool = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM doc WHERE thread = ?1 AND entry = ?2 AND version = ?3)
                     OR EXISTS (SELECT 1 FROM forgotten WHERE version = ?3)",
            )?
            .query_row(params![thread, entry, version], |row| row.get(0))?;
        if known {
            return Ok(());
        }
        let loaded = load::<EntryVersion>(self.reading, cell.version).map_err(StoreError::from);
        let Some(loaded) = unless_damaged(loaded)? else {
            self.caught_up.unreadable += 1;
            return Ok(());
        };
        connection
            .prepare_cached(
                "INSERT INTO doc (thread, entry, version, role, time) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                thread,
                entry,
                version,
                loaded.role.to_lowercase(),
                loaded.edited.unwrap_or(loaded.created).millis()
            ])?;
        let text = segment(&indexed_text(&loaded));
        connection
            .prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
            .execute(params![connection.last_insert_rowid(), text])?;
        batch.docs += 1;
        batch.bytes += text.len();
        self.caught_up.added += 1;
        Ok(())
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
}

impl Batch<'_> {
    fn is_full(&self) -> bool {
        self.docs >= MAX_DOCS || self.bytes >= MAX_BYTES
    }

    /// Commits, with the cursor at the last completely indexed row.
    fn commit(self, last: Option<&ScannedRow>) -> rusqlite::Result<()> {
        if let Some(row) = last {
            self.transaction
                .prepare_cached("UPDATE cursor SET sequence = ?1, operation = ?2")?
                .execute(params![row.sequence, row.id])?;
        }
        self.transaction.commit()
    }
}
