//! Maintenance of the whole store, with exclusive write access and a separate connection.
//!
//! Ordinary writes queue for the writer. Maintenance runs long, reports progress, and needs operations that no
//! transaction allows (releasing pages, truncating the write-ahead log), so it takes the writers' lock itself.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::location::{database, lock, open_private};
use crate::open::{Locked, connect};
use crate::queries::Queries;
use crate::{Store, StoreError, Writing};

/// How long to wait for readers before truncating the write-ahead log.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Exclusive write access to the store.
pub(crate) struct Alone<'store> {
    store: &'store Store,
    pub(crate) connection: Connection,
}

impl Store {
    /// Runs a job while no other writer runs, in any process.
    pub(crate) fn alone<T>(
        &self,
        job: impl FnOnce(&mut Alone<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer.check_usable()?;
        // A new file handle: the writer would share a lock on its own handle.
        let file = open_private(&lock(&self.folder))?;
        let _guard = Locked::new(&file, &self.folder)?;
        job(&mut Alone { store: self, connection: connect(&database(&self.folder))? })
    }
}

impl Alone<'_> {
    /// Runs a job in one transaction; it is durable when this returns.
    pub(crate) fn transact<T>(
        &mut self,
        job: impl FnOnce(&Writing<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = job(&Writing::new(Queries::begin(&transaction, &self.store.cache)))?;
        transaction.commit().map_err(|error| self.store.writer.commit_failed(error))?;
        Ok(done)
    }

    /// Returns free pages to the file system.
    pub(crate) fn give_back_pages(&self) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = statement.query([])?;
        // Each step frees one page.
        while rows.next()?.is_some() {}
        Ok(())
    }

    /// Checkpoints and truncates the write-ahead log; returns whether that was possible. A reader on an older
    /// snapshot prevents it.
    pub(crate) fn empty_log(&self) -> Result<LogState, StoreError> {
        self.connection.busy_timeout(PATIENCE)?;
        let busy: i64 = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        Ok(if busy == 0 { LogState::Emptied } else { LogState::HeldByReader })
    }
}

/// The state of the write-ahead log after a truncation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogState {
    /// It is empty: no deleted data is left in it.
    #[default]
    Emptied,
    /// A reader still uses it, so deleted data stays in it until the next writer truncates it.
    HeldByReader,
}

impl LogState {
    /// The combined state of two logs.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Emptied { other } else { self }
    }
}
