//! Following the log: what anybody has written since, in whatever process.
//!
//! ```text
//!   sequence   1  2  3  4  5  6            whoever has seen 4 asks for what comes after it, and gets 5 and 6
//!   purge      1  ·  ·  4  5  6  7         2 and 3 are gone, 7 says so: holes are no loss
//! ```
//!
//! A number is never given twice, and none that comes later is lower than one that was given. A purge takes operations
//! out and puts a mark behind all others. A repair that joins a log again adds its operations once more at the end.
//!
//! One asks often and cheaply: a connection of its own knows by one number of SQLite's whether anybody has committed
//! anything, and only then is the log looked at.

use std::sync::Arc;

use rusqlite::Connection;

use crate::cache::Cache;
use crate::location::database;
use crate::open::connect;
use crate::queries::Queries;
use crate::{LogRow, Store, StoreError};

/// A place from which the log is followed.
pub struct Tail {
    connection: Connection,
    cache: Arc<Cache>,
    /// What SQLite said when the last place was read, and that place.
    seen: Option<(i64, i64)>,
}

impl Store {
    /// Begins to follow the log.
    pub fn tail(&self) -> Result<Tail, StoreError> {
        let connection = connect(&database(&self.folder))?;
        Ok(Tail { connection, cache: Arc::clone(&self.cache), seen: None })
    }
}

impl Tail {
    /// The last place in the sequence of all operations. It takes microseconds where nothing was written since.
    pub fn last(&mut self) -> Result<i64, StoreError> {
        // Read first: what is committed between the two is looked at again the next time.
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

    /// The operations after a place, oldest first.
    pub fn since(&mut self, sequence: i64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        if self.last()? <= sequence {
            return Ok(Vec::new());
        }
        // One moment for the rows and for what is known of those before and after them.
        let moment = self.connection.unchecked_transaction()?;
        let found = Queries::begin(&moment, &self.cache).operations_since(sequence, limit)?;
        moment.commit()?;
        Ok(found)
    }
}
