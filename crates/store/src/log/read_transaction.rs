//! Read transactions: a consistent snapshot of the store.

use rusqlite::Connection;
use std::sync::PoisonError;

use crate::location::database;
use crate::log::queries::{Queries, ReadPoint};
use crate::schema::check_version;
use crate::{Store, StoreError};

/// A snapshot of the store. Later writes are not visible.
pub struct ReadTransaction<'store> {
    store: &'store Store,
    /// Taken out only on drop.
    connection: Option<Connection>,
    read_point: ReadPoint,
}

impl ReadTransaction<'_> {
    pub fn store(&self) -> &Store {
        self.store
    }
}

impl Store {
    /// Starts a read transaction.
    pub fn read(&self) -> Result<ReadTransaction<'_>, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => (self.connect)(&database(&self.folder))?,
        };
        // The first read inside the transaction fixes the snapshot.
        connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
        check_version(&connection, self.schema)?;
        let read_point = Queries::begin(&connection, &self.cache).read_point();
        Ok(ReadTransaction { store: self, connection: Some(connection), read_point })
    }
}

impl ReadTransaction<'_> {
    pub fn queries(&self) -> Queries<'_> {
        let connection = self.connection.as_ref().expect("present until the transaction is dropped");
        Queries::at(connection, &self.store.cache, self.read_point)
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        // A connection that cannot end its transaction is closed instead of reused.
        if connection.execute_batch("COMMIT").is_ok() {
            self.store.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
