//! The baseline: one durable insert of a 2 KB row into SQLite, with the settings of Retake's store.
//!
//! The minimum for a program that stores its data in SQLite and acknowledges only durable changes: one transaction, one
//! row, an increasing integer key, one sync of the log.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::Outcome;
use crate::measure::timed;
use crate::messages::Messages;

pub(crate) struct RawInsert {
    connection: Connection,
    messages: Messages,
}

impl RawInsert {
    /// Creates the database, and fills its log once, as in a store in use.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let connection = Connection::open(folder.join("floor.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA mmap_size = 0;
             PRAGMA cell_size_check = ON;
             PRAGMA secure_delete = ON;
             PRAGMA cache_size = -16384;
             PRAGMA wal_autocheckpoint = 2000;
             PRAGMA temp_store = MEMORY;
             CREATE TABLE message (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
        )?;
        let mut baseline = Self { connection, messages: Messages::new(7) };
        let filling = baseline.connection.unchecked_transaction()?;
        for _ in 0..3_000 {
            let text = baseline.messages.text();
            filling.prepare_cached("INSERT INTO message (body) VALUES (?1)")?.execute([text])?;
        }
        filling.commit()?;
        baseline.insert()?;
        Ok(baseline)
    }

    /// Inserts one row durably and returns the duration.
    pub(crate) fn insert(&mut self) -> Outcome<Duration> {
        let text = self.messages.text();
        self.insert_text(&text)
    }

    /// The same with a given text.
    pub(crate) fn insert_text(&mut self, text: &str) -> Outcome<Duration> {
        let mut statement = self.connection.prepare_cached("INSERT INTO message (body) VALUES (?1)")?;
        let (_, took) = timed(|| Ok(statement.execute([text])?))?;
        Ok(took)
    }
}
