//! Maintenance of the whole store, with exclusive write access and a separate connection.
//!
//! Ordinary writes queue for the writer. Maintenance runs long, reports progress, and needs operations that no
//! transaction allows (releasing pages, truncating the write-ahead log), so it takes the writers' lock itself.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::location::{database, lock, open_private};
use crate::log::queries::Queries;
use crate::open::{Locked, connect};
use crate::{Store, StoreError, WriteTransaction};

/// How long to wait for readers before truncating the write-ahead log.
pub(crate) const READER_WAIT: Duration = Duration::from_secs(5);

/// Exclusive write access to the store.
pub(crate) struct ExclusiveAccess<'store> {
    store: &'store Store,
    pub(crate) connection: Connection,
}

impl Store {
    /// Runs a job while no other writer runs, in any process.
    pub(crate) fn with_exclusive_access<T>(
        &self,
        job: impl FnOnce(&mut ExclusiveAccess<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer.check_usable()?;
        // A new file handle: the writer would share a lock on its own handle.
        let file = open_private(&lock(&self.folder))?;
        let _guard = Locked::new(&file, &self.folder)?;
        job(&mut ExclusiveAccess { store: self, connection: connect(&database(&self.folder))? })
    }
}

impl ExclusiveAccess<'_> {
    /// Runs a job in one transaction; it is durable when this returns.
    pub(crate) fn transact<T>(
        &mut self,
        job: impl FnOnce(&WriteTransaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = job(&WriteTransaction::new(Queries::begin(&transaction, &self.store.cache)))?;
        transaction.commit().map_err(|error| self.store.writer.commit_failed(error))?;
        Ok(done)
    }

    /// Returns free pages to the file system.
    pub(crate) fn release_free_pages(&self) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = statement.query([])?;
        // Each step frees one page.
        while rows.next()?.is_some() {}
        Ok(())
    }

    /// Checkpoints and truncates the write-ahead log; returns whether that was possible. A reader on an older
    /// snapshot prevents it.
    pub(crate) fn truncate_wal(&self) -> Result<WalState, StoreError> {
        self.connection.busy_timeout(READER_WAIT)?;
        let busy: i64 = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        Ok(if busy == 0 { WalState::Emptied } else { WalState::HeldByReader })
    }
}

/// The state of the write-ahead log after a truncation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WalState {
    /// It is empty: no deleted data is left in it.
    #[default]
    Emptied,
    /// A reader still uses it, so deleted data stays in it until the next writer truncates it.
    HeldByReader,
}

impl WalState {
    /// The combined state of two logs.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Emptied { other } else { self }
    }
}
