//! The floor: one durable insert of one 2 KB row into SQLite, with the settings of Retake's own store.
//!
//! No less can be asked of a program that keeps its data in SQLite and acknowledges nothing before it is on
//! disk: one transaction, one row, an integer key that only grows, one sync of the log.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::Outcome;
use crate::measure::timed;
use crate::messages::Messages;

/// A database with one table.
pub(crate) struct Floor {
    connection: Connection,
    messages: Messages,
}

impl Floor {
    /// Makes the database, and writes to it until its log has come round once, as that of a store in use has.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let connection = Connection::open(folder.join("floor.db"))?;
        connection.execute_batch(
            "PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA mmap_size = 0;
             PRAGMA cell_size_check = ON;
             PRAGMA secure_delete = ON;
             PRAGMA cache_size = -16384;
             PRAGMA wal_autocheckpoint = 2000;
             PRAGMA temp_store = MEMORY;
             CREATE TABLE message (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
        )?;
        let mut floor = Self { connection, messages: Messages::new(7) };
        let filling = floor.connection.unchecked_transaction()?;
        for _ in 0..3_000 {
            let text = floor.messages.text();
            filling.prepare_cached("INSERT INTO message (body) VALUES (?1)")?.execute([text])?;
        }
        filling.commit()?;
        floor.insert()?;
        Ok(floor)
    }

    /// Inserts one row durably, and says how long that took.
    pub(crate) fn insert(&mut self) -> Outcome<Duration> {
        let text = self.messages.text();
        self.insert_text(&text)
    }

    /// The same with a text that the caller has.
    pub(crate) fn insert_text(&mut self, text: &str) -> Outcome<Duration> {
        let mut statement = self.connection.prepare_cached("INSERT INTO message (body) VALUES (?1)")?;
        let (_, took) = timed(|| Ok(statement.execute([text])?))?;
        Ok(took)
    }
}
