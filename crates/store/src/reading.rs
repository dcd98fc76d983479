//! Read transactions: a consistent snapshot of the store.

use rusqlite::Connection;
use std::sync::PoisonError;

use crate::location::database;
use crate::open::connect;
use crate::queries::{Moment, Queries};
use crate::{Store, StoreError};

/// A snapshot of the store. Later writes are not visible.
pub struct Reading<'store> {
    store: &'store Store,
    /// Taken out only on drop.
    connection: Option<Connection>,
    moment: Moment,
}

impl Reading<'_> {
    pub fn store(&self) -> &Store {
        self.store
    }
}

impl Store {
    /// Starts a read transaction.
    pub fn read(&self) -> Result<Reading<'_>, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&database(&self.folder))?,
        };
        // The first read inside the transaction fixes the snapshot.
        connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
        let moment = Queries::begin(&connection, &self.cache).moment();
        Ok(Reading { store: self, connection: Some(connection), moment })
    }
}

impl Reading<'_> {
    pub fn queries(&self) -> Queries<'_> {
        let connection = self.connection.as_ref().expect("present until the transaction is dropped");
        Queries::at(connection, &self.store.cache, self.moment)
    }
}

impl Drop for Reading<'_> {
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
