//! Follows the log: reads operations written since a position, by any process.
//!
//! ```text
//!   sequence   1  2  3  4  5  6            a reader at position 4 gets 5 and 6
//!   purge      1  ·  ·  4  5  6  7         2 and 3 are purged, 7 records the purge: gaps are not losses
//! ```
//!
//! Sequence numbers are unique and only increase. A purge removes operations and appends a marker at the end.
//! A repair that joins a log appends its operations again at the end.
//!
//! Polling is cheap: on a dedicated connection, SQLite's `data_version` shows whether anything was committed,
//! and only then does the log need to be read.

use std::sync::Arc;

use rusqlite::Connection;

use crate::location::database;
use crate::log::queries::Queries;
use crate::objects::cache::Cache;
use crate::open::connect;
use crate::{LogRow, Store, StoreError};

/// A cursor that follows the log.
pub struct Tail {
    connection: Connection,
    cache: Arc<Cache>,
    /// SQLite's `data_version` at the last read, and the last sequence number at that time.
    seen: Option<(i64, i64)>,
}

impl Store {
    /// Starts to follow the log.
    pub fn tail(&self) -> Result<Tail, StoreError> {
        let connection = connect(&database(&self.folder))?;
        Ok(Tail { connection, cache: Arc::clone(&self.cache), seen: None })
    }
}

impl Tail {
    /// The last sequence number of all operations. Takes microseconds if nothing was written since the last
    /// call.
    pub fn last(&mut self) -> Result<i64, StoreError> {
        // Read this first: a commit between the two reads is then picked up by the next call.
        let now: i64 =
            self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if let Some((then, last)) = self.seen
            && then == now
        {
            return Ok(last);
        }
        let last = self
            .connection
            .prepare_cached("SELECT coalesce(max(sequence), 0) FROM operation")?
            .query_row([], |row| row.get(0))?;
        self.seen = Some((now, last));
        Ok(last)
    }

    /// Operations after a sequence number, oldest first.
    pub fn since(&mut self, sequence: i64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        if self.last()? <= sequence {
            return Ok(Vec::new());
        }
        // One transaction, so that all rows come from the same version of the database.
        let transaction = self.connection.unchecked_transaction()?;
        let found = Queries::begin(&transaction, &self.cache).operations_since(sequence, limit)?;
        transaction.commit()?;
        Ok(found)
    }
}
