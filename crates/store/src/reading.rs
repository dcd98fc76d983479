//! Reading: the store as it was at one moment, however long one looks at it.

use rusqlite::Connection;
use std::sync::PoisonError;

use crate::location::database;
use crate::open::connect;
use crate::queries::{Moment, Queries};
use crate::{Store, StoreError};

/// A moment of the store. Writers go on beside it and are not seen.
pub struct Reading<'store> {
    store: &'store Store,
    /// Taken out only when the reading ends.
    connection: Option<Connection>,
    moment: Moment,
}

impl Reading<'_> {
    /// The store that is read.
    pub fn store(&self) -> &Store {
        self.store
    }
}

impl Store {
    /// Begins a reading.
    pub fn read(&self) -> Result<Reading<'_>, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&database(&self.folder))?,
        };
        // The moment is fixed by the first read inside the transaction.
        connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
        let moment = Queries::begin(&connection, &self.cache).moment();
        Ok(Reading { store: self, connection: Some(connection), moment })
    }
}

impl Reading<'_> {
    /// What can be asked.
    pub fn queries(&self) -> Queries<'_> {
        let connection = self.connection.as_ref().expect("held until the reading ends");
        Queries::at(connection, &self.store.cache, self.moment)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        // A connection that cannot end its transaction is closed instead of being used again.
        if connection.execute_batch("COMMIT").is_ok() {
            self.store.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
