//! The log: operations by thread and version, and all of them in the order they were written.

use retake_model::content::{ContentId, Kind, decode};
use retake_model::history::{Log, Step};
use retake_model::operation::{Operation, Version};
use rusqlite::{OptionalExtension, params};

use crate::StoreError;
use crate::queries::Queries;

/// An operation as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredOperation {
    /// Its name.
    pub id: ContentId,
    /// Its place among all operations of the store.
    pub sequence: i64,
    /// What it is.
    pub operation: Operation,
}

impl Queries<'_> {
    /// One operation of a thread.
    pub fn operation(&self, thread: i64, version: Version) -> Result<Option<StoredOperation>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT sequence, id, body FROM operation WHERE thread = ?1 AND version = ?2")?
            .query_row(params![thread, version as i64], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
            })
            .optional()?;
        row.map(|(sequence, id, body)| checked(sequence, &id, &body)).transpose()
    }

    /// The last operation of a thread.
    pub fn head(&self, thread: i64) -> Result<Option<StoredOperation>, StoreError> {
        let row = self
            .connection
            .prepare_cached(
                "SELECT sequence, id, body FROM operation WHERE thread = ?1 AND version > 0
                 ORDER BY version DESC LIMIT 1",
            )?
            .query_row([thread], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
            })
            .optional()?;
        row.map(|(sequence, id, body)| checked(sequence, &id, &body)).transpose()
    }

    /// The operations of a thread up to and including a version, newest first.
    pub fn operations_back(
        &self,
        thread: i64,
        from: Version,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, id, body FROM operation WHERE thread = ?1 AND version BETWEEN 1 AND ?2
             ORDER BY version DESC LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![thread, from.min(i64::MAX as u64) as i64, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, body): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
            found.push(checked(row.get(0)?, &id, &body)?);
        }
        Ok(found)
    }

    /// All operations after a place in the sequence, oldest first: a thread's row number, and its operation;
    /// `None` where the thread was purged.
    pub fn operations_since(
        &self,
        sequence: i64,
        limit: usize,
    ) -> Result<Vec<(i64, i64, Option<StoredOperation>)>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, thread, id, body FROM operation WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
        )?;
        let mut rows = statement.query(params![sequence, i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (sequence, thread): (i64, i64) = (row.get(0)?, row.get(1)?);
            let (id, body): (Vec<u8>, Option<Vec<u8>>) = (row.get(2)?, row.get(3)?);
            let operation = body.map(|body| checked(sequence, &id, &body)).transpose()?;
            found.push((sequence, thread, operation));
        }
        Ok(found)
    }

    /// The last place in the sequence of all operations.
    pub fn last_sequence(&self) -> Result<i64, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT coalesce(max(sequence), 0) FROM operation")?
            .query_row([], |row| row.get(0))?)
    }

    /// The log of one thread, for walks along it.
    pub fn log(&self, thread: i64) -> ThreadLog<'_, '_> {
        ThreadLog { queries: self, thread }
    }
}

/// The log of one thread.
pub struct ThreadLog<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
}

impl Log for ThreadLog<'_, '_> {
    type Error = StoreError;

    fn step(&self, version: Version) -> Result<Step, StoreError> {
        let found = self.queries.operation(self.thread, version)?;
        let found = found.ok_or_else(|| StoreError::Damaged(format!("operation {version} is missing")))?;
        Ok(Step { place: found.operation.place, turn: found.operation.turn })
    }
}

/// An operation whose bytes are what its name says.
pub(crate) fn checked(sequence: i64, id: &[u8], body: &[u8]) -> Result<StoredOperation, StoreError> {
    let damaged = || StoreError::Damaged(format!("operation at {sequence} in the log"));
    let id: [u8; 32] = id.try_into().map_err(|_| damaged())?;
    let id = ContentId::from_bytes(id);
    if ContentId::of(Kind::Operation, body) != id {
        return Err(damaged());
    }
    let operation = decode(body).map_err(|_| damaged())?;
    Ok(StoredOperation { id, sequence, operation })
}
