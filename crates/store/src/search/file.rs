//! The file of the index: created when missing, rebuilt when unusable.
//!
//! Everything in it can be derived from the log, so it is never repaired. A rebuild does not delete the file, which
//! other processes may have open, but empties it in a transaction, using SQLite's own reset of a possibly damaged
//! database. Only if that fails are the files deleted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::SearchError;
use super::scratch::Scratch;
use super::segment::TOKENIZER;
use crate::location::{private_file, search};

/// The format version of the index. Any other version, older or newer, is rebuilt.
const VERSION: i64 = 3;

/// Memory for the words of one batch.
const HASH_BYTES: usize = 64 * 1024 * 1024;

/// Longer than another process holds the lock for one batch.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_mins(5);

/// Why the index was rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebuildReason {
    Damaged(String),
    /// Another version of Retake created it.
    OtherVersion,
    /// It belonged to another store, or to a later state of this one.
    OtherStore,
    /// The caller requested it.
    Requested,
}

pub(super) struct IndexFile {
    pub(super) folder: PathBuf,
    pub(super) connection: Connection,
    pub(super) scratch: Scratch,
    pub(super) rebuilt: Option<RebuildReason>,
}

impl IndexFile {
    pub(super) fn open(folder: &Path) -> Result<Self, SearchError> {
        let mut file = Self {
            folder: folder.to_owned(),
            connection: connect(folder)?,
            scratch: Scratch::new()?,
            rebuilt: None,
        };
        match file.prepare() {
            Ok(()) => {}
            Err(error) => match error.reason_to_rebuild() {
                Some(reason) => file.reset(reason)?,
                None => return Err(error),
            },
        }
        Ok(file)
    }

    /// Replaces the index by an empty one.
    pub(super) fn reset(&mut self, reason: RebuildReason) -> Result<(), SearchError> {
        self.rebuilt = Some(reason);
        let emptied = empty(&self.connection).map_err(SearchError::from);
        match emptied.and_then(|()| self.prepare()) {
            Err(error) if error.reason_to_rebuild().is_some() => {}
            other => return other,
        }
        // The connection must be closed before its files are deleted.
        self.connection = Connection::open_in_memory()?;
        remove(&self.folder)?;
        self.connection = connect(&self.folder)?;
        self.prepare()
    }

    /// Creates the tables if they are missing.
    pub(super) fn prepare(&mut self) -> Result<(), SearchError> {
        set_up(&self.connection)?;
        match version(&self.connection)? {
            VERSION => return Ok(()),
            0 => {}
            _ => return Err(SearchError::OtherVersion),
        }
        // Enabling the write-ahead log needs exclusive access, and SQLite does not always wait for it.
        retry_while_busy(|| self.connection.pragma_update(None, "journal_mode", "WAL"))?;
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if version(&transaction)? == VERSION {
            return Ok(());
        }
        transaction.execute_batch(&schema())?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        Ok(transaction.commit()?)
    }
}

fn schema() -> String {
    format!(
        "CREATE TABLE doc (
             number  INTEGER PRIMARY KEY,
             thread  INTEGER NOT NULL,
             entry   BLOB NOT NULL,
             version BLOB NOT NULL,
             role    TEXT NOT NULL,              -- in lower case
             time    INTEGER NOT NULL,           -- when this version was made
             latest  INTEGER NOT NULL            -- the newest time of the docs up to this number
         ) STRICT;
         CREATE UNIQUE INDEX doc_version ON doc (thread, entry, version);
         CREATE INDEX doc_time ON doc (time);

         -- The words of each doc, under its number. The text itself is in the store.
         CREATE VIRTUAL TABLE words USING fts5(
             text, content = '', contentless_delete = 1, tokenize = '{TOKENIZER}'
         );
         -- A whole batch is sorted in memory, and segments are merged eight at a time instead of four, which
         -- halves how often each word is written.
         INSERT INTO words (words, rank) VALUES ('hashsize', {HASH_BYTES});
         INSERT INTO words (words, rank) VALUES ('automerge', 8);

         -- Versions that must not be indexed again.
         CREATE TABLE forgotten (version BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;

         -- How far the log was followed.
         CREATE TABLE cursor (
             sequence  INTEGER NOT NULL,
             operation BLOB NOT NULL,            -- the name of the operation there
             leftovers INTEGER NOT NULL          -- whether words of docs that are gone may still be in the file
         ) STRICT;
         INSERT INTO cursor VALUES (0, x'', 0);"
    )
}

fn connect(folder: &Path) -> Result<Connection, SearchError> {
    let path = search(folder);
    private_file(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Per-connection settings. Some of them read the file, and so detect damage.
fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // A power cut may lose the last commits, together with the cursor: they are indexed again.
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL;
         PRAGMA mmap_size = 0;
         PRAGMA cell_size_check = ON;
         PRAGMA cache_size = -16384;
         PRAGMA wal_autocheckpoint = 8000;
         PRAGMA temp_store = MEMORY;",
    )
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// SQLite's reset of a database with any content.
fn empty(connection: &Connection) -> rusqlite::Result<()> {
    connection.flush_prepared_statement_cache();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = connection.execute_batch("VACUUM");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied
}

fn remove(folder: &Path) -> Result<(), SearchError> {
    let path = search(folder);
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let path = name.into();
                return Err(crate::StoreError::File { path, error }.into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn retry_while_busy(mut attempt: impl FnMut() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    const ATTEMPTS: usize = 200;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
    attempt()
}
