//! Maintenance of the whole store, with exclusive write access and a separate connection.
//!
//! Ordinary writes queue for the writer. Maintenance runs long, reports progress, and needs operations that no
//! transaction allows (releasing pages, truncating the write-ahead log), so it takes the writers' lock itself.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::location::{database, lock, open_private};
use crate::log::queries::Queries;
use crate::log::writer::Writer;
use crate::open::{Locked, connect};
use crate::schema::pages;
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
        let writing = WriteTransaction::new(Queries::begin(&transaction, &self.store.cache));
        Writer::check_begun(&transaction)?;
        let done = job(&writing)?;
        drop(writing);
        self.store.writer.check_whole(&transaction)?;
        transaction.commit().map_err(|error| self.store.writer.commit_failed(error))?;
        Ok(done)
    }

    /// Destroys what deleted rows left in the database and in the write-ahead log.
    ///
    /// SQLite overwrites a deleted row, but not the copies that remain in the unused part of a page when it moves rows
    /// around. So the database is written anew from its rows, which takes as much memory as the database.
    pub(crate) fn destroy_deleted_rows(&self) -> Result<WalState, StoreError> {
        self.connection.execute_batch("VACUUM")?;
        self.truncate_wal()
    }

    /// Returns free pages to the file system, if they are a large part of the file.
    pub(crate) fn release_free_pages(&self) -> Result<(), StoreError> {
        pages::release_free(&self.connection)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"hunter2-correct-horse-battery-staple";

    /// A deterministic random number generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % limit) as i64
        }
    }

    /// Adds and deletes rows of all sizes in random order, so that SQLite moves rows between pages, then deletes the rows
    /// with the secret.
    fn delete_secrets(access: &mut ExclusiveAccess<'_>, seed: u64) -> Result<(), StoreError> {
        let mut random = Random(seed);
        access.transact(|writing| {
            for _ in 0..400 {
                let holds = random.below(10) < 3;
                let mut body = if holds { SECRET.to_vec() } else { Vec::new() };
                let length = random.below(900);
                body.extend((0..length).map(|_| random.below(256) as u8));
                writing.connection.execute(
                    "INSERT OR IGNORE INTO quarantine (number, source, place, body, time) VALUES (?1, ?2, 0, ?3, 0)",
                    rusqlite::params![random.below(1_000_000), if holds { "secret" } else { "other" }, body],
                )?;
                if random.below(2) == 0 {
                    writing.connection.execute(
                        "DELETE FROM quarantine WHERE number =
                         (SELECT number FROM quarantine WHERE source = 'other' AND number > ?1 LIMIT 1)",
                        [random.below(1_000_000)],
                    )?;
                }
            }
            writing.connection.execute("DELETE FROM quarantine WHERE source = 'secret'", [])?;
            Ok(())
        })
    }

    /// How many of some stores contain the secret after it was deleted.
    fn stores_with_secret(
        destroy: &dyn Fn(&ExclusiveAccess<'_>) -> Result<(), StoreError>,
    ) -> Result<usize, StoreError> {
        let mut found = 0;
        for seed in 0..12 {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let store = Store::open(&folder.path().join("store")).expect("a store");
            store.with_exclusive_access(|access| {
                delete_secrets(access, seed)?;
                destroy(access)
            })?;
            let bytes = std::fs::read(database(store.folder())).expect("a file");
            found += usize::from(memchr::memmem::find(&bytes, SECRET).is_some());
        }
        Ok(found)
    }

    #[test]
    fn copies_that_sqlite_left_of_deleted_rows_are_destroyed() {
        let left = stores_with_secret(&|access| access.truncate_wal().map(drop));
        assert!(left.expect("a store") > 0, "the control: deleting rows is not enough");
        let destroyed = stores_with_secret(&|access| {
            assert_eq!(access.destroy_deleted_rows()?, WalState::Emptied);
            Ok(())
        });
        assert_eq!(destroyed.expect("a store"), 0);
    }
}
