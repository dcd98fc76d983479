//! Work on the store as a whole: alone among all writers, on a connection of its own.
//!
//! Ordinary writes queue for the writer and are gathered there. Maintenance runs long, reports how
//! far it is, and must do things that no transaction can hold (give pages back, empty the log), so it takes
//! the writers' lock itself.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::location::{database, lock, open_private};
use crate::open::{Locked, connect};
use crate::queries::Queries;
use crate::{Store, StoreError, Writing};

/// How long emptying the log waits for readers that are still looking at it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The store, while nobody else writes to it.
pub(crate) struct Alone<'store> {
    store: &'store Store,
    pub(crate) connection: Connection,
}

impl Store {
    /// Runs a job while no other writer runs, in this process or in another.
    pub(crate) fn alone<T>(
        &self,
        job: impl FnOnce(&mut Alone<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer.check_usable()?;
        // A handle of its own: the writer would share a lock that was taken on the same one.
        let file = open_private(&lock(&self.folder))?;
        let _guard = Locked::new(&file, &self.folder)?;
        job(&mut Alone { store: self, connection: connect(&database(&self.folder))? })
    }
}

impl Alone<'_> {
    /// Runs a job in one transaction, durable when this returns.
    pub(crate) fn transact<T>(
        &mut self,
        job: impl FnOnce(&Writing<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = job(&Writing::new(Queries::begin(&transaction, &self.store.cache)))?;
        transaction.commit().map_err(|error| self.store.writer.commit_failed(error))?;
        Ok(done)
    }

    /// Gives pages that hold nothing back to the file system.
    pub(crate) fn give_back_pages(&self) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = statement.query([])?;
        // Each step frees one page.
        while rows.next()?.is_some() {}
        Ok(())
    }

    /// Moves the log into the database and empties it; says whether that was possible. A reader that still
    /// looks at an older moment makes it impossible.
    pub(crate) fn empty_log(&self) -> Result<LogState, StoreError> {
        self.connection.busy_timeout(PATIENCE)?;
        let busy: i64 = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        Ok(if busy == 0 { LogState::Emptied } else { LogState::HeldByReader })
    }
}

/// What became of the database's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogState {
    /// It is empty: nothing that was deleted is left in it.
    #[default]
    Emptied,
    /// A reader still looks at it, so that it keeps what was deleted until the next writer empties it.
    HeldByReader,
}

impl LogState {
    /// The state of two logs: both must be empty.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Emptied { other } else { self }
    }
}
