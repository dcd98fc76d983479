//! The log: operations by thread and version, and in the order in which they were written.

use std::collections::HashMap;

use retake_model::content::{ContentId, Kind, decode};
use retake_model::history::{LogStep, OperationLog};
use retake_model::id::{RequestId, TakeId};
use retake_model::object::load;
use retake_model::operation::{Operation, Version};
use retake_model::state::ThreadState;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};

use crate::StoreError;
use crate::log::queries::Queries;

/// An operation with its position in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredOperation {
    /// Its content id.
    pub id: ContentId,
    /// Its sequence number among all operations of the store.
    pub sequence: i64,
    pub operation: Operation,
}

/// A sequence number, the row number of the thread, and the operation; `None` where the thread was purged.
pub type LogRow = (i64, i64, Option<StoredOperation>);

/// A row of the log, as far as it can be read.
pub(crate) struct ScannedRow {
    pub(crate) sequence: i64,
    /// The row number of the thread.
    pub(crate) thread: i64,
    /// The id of the operation.
    pub(crate) id: Vec<u8>,
    pub(crate) content: RowContent,
}

pub(crate) enum RowContent {
    Operation(Box<StoredOperation>),
    Purged,
    Damaged,
}

/// The most operations that one transaction caches.
const MAX_REMEMBERED: usize = 256;

/// Finds operations of thread `?1` in the index, then reads their rows from the table.
macro_rules! by_version {
    () => {
        "SELECT place.sequence, found.id, found.body, found.thread, found.version, place.version
         FROM operation AS place LEFT JOIN operation AS found ON found.sequence = place.sequence
         WHERE place.thread = ?1"
    };
}

impl Queries<'_> {
    pub fn operation(&self, thread: i64, version: Version) -> Result<Option<StoredOperation>, StoreError> {
        if let Some(known) = self.operations.borrow().get(&(thread, version)) {
            return Ok(Some(known.clone()));
        }
        let sql = concat!(by_version!(), " AND place.version = ?2");
        let found = self.operations_by_version(sql, thread, params![thread, version as i64])?;
        Ok(found.into_iter().next().inspect(|found| self.remember(thread, found)))
    }

    pub fn head(&self, thread: i64) -> Result<Option<StoredOperation>, StoreError> {
        let sql = concat!(by_version!(), " AND place.version > 0 ORDER BY place.version DESC LIMIT 1");
        let found = self.operations_by_version(sql, thread, params![thread])?;
        Ok(found.into_iter().next().inspect(|found| self.remember(thread, found)))
    }

    /// Forgets the operations that this transaction has read, after it rewrote or removed some.
    pub(crate) fn forget_operations(&self) {
        self.operations.borrow_mut().clear();
    }

    fn remember(&self, thread: i64, found: &StoredOperation) {
        let mut known = self.operations.borrow_mut();
        // Walking a long log must not fill the cache.
        if known.len() < MAX_REMEMBERED {
            known.insert((thread, found.operation.version), found.clone());
        }
    }

    /// The operations of a thread down from a version, newest first.
    pub fn operations_back(
        &self,
        thread: i64,
        from: Version,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let sql = concat!(
            by_version!(),
            " AND place.version BETWEEN 1 AND ?2 ORDER BY place.version DESC LIMIT ?3"
        );
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let last = from.min(i64::MAX as u64) as i64;
        let found = self.operations_by_version(sql, thread, params![thread, last, most])?;
        // Versions have no gaps; a missing one was lost.
        let versions = || found.iter().map(|stored| stored.operation.version);
        let holes = versions().zip(versions().skip(1)).any(|(newer, older)| older + 1 != newer);
        let headless = found.len() < limit && versions().next_back().is_some_and(|oldest| oldest != 1);
        if holes || headless {
            return Err(StoreError::Damaged("operations are missing from a log".to_owned()));
        }
        Ok(found)
    }

    /// Operations found by thread and version. Index, row and body must agree on both: one damaged byte in the index
    /// leads to another intact row.
    fn operations_by_version(
        &self,
        sql: &str,
        thread: i64,
        values: impl rusqlite::Params,
    ) -> Result<Vec<StoredOperation>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let sequence: i64 = row.get(0)?;
            let damaged = || StoreError::Damaged(format!("the index of the log at {sequence}"));
            let whole: (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
            // An index entry without a row leaves all columns empty.
            let (Some(id), Some(body)) = whole else { return Err(damaged()) };
            let stored = checked(sequence, &id, &body)?;
            let (whose, version, indexed): (i64, i64, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
            if whose != thread || version != indexed || version as Version != stored.operation.version {
                return Err(damaged());
            }
            found.push(stored);
        }
        Ok(found)
    }

    /// All operations after a sequence number, oldest first; `None` where the thread was purged.
    pub fn operations_since(&self, sequence: i64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        let mut found = Vec::new();
        for row in self.scan_log(sequence, limit)? {
            let operation = match row.content {
                RowContent::Operation(stored) => Some(*stored),
                RowContent::Purged => None,
                RowContent::Damaged => {
                    return Err(StoreError::Damaged(format!("operation at {} in the log", row.sequence)));
                }
            };
            found.push((row.sequence, row.thread, operation));
        }
        self.check_unbroken(sequence, found.len() < limit, &found)?;
        Ok(found)
    }

    /// The rows of the log after a sequence number, oldest first, whether or not they are damaged. Row, body and index
    /// must agree: one damaged byte moves a row to another thread, or makes it look like the mark of a purge.
    pub(crate) fn scan_log(&self, sequence: i64, limit: usize) -> Result<Vec<ScannedRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, thread, version, id, body FROM operation WHERE sequence > ?1
             ORDER BY sequence LIMIT ?2",
        )?;
        let mut rows = statement.query(params![sequence, i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (sequence, thread, version): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (id, body): (Vec<u8>, Option<Vec<u8>>) = (row.get(3)?, row.get(4)?);
            let indexed = match self.place_of(thread, version as Version) {
                Err(error) if error.is_damage() => None,
                indexed => indexed?,
            };
            let content = match body {
                _ if indexed != Some(sequence) => RowContent::Damaged,
                Some(body) => match checked(sequence, &id, &body) {
                    Ok(stored) if stored.operation.version as i64 == version => {
                        RowContent::Operation(Box::new(stored))
                    }
                    _ => RowContent::Damaged,
                },
                None if version == 0 && id.is_empty() => RowContent::Purged,
                None => RowContent::Damaged,
            };
            found.push(ScannedRow { sequence, thread, id, content });
        }
        Ok(found)
    }

    /// Refuses a section of the log that lacks a row, which a follower would otherwise never see. Versions of a
    /// thread have no gaps, and the index knows the rows before and after the section.
    fn check_unbroken(&self, after: i64, to_the_end: bool, found: &[LogRow]) -> Result<(), StoreError> {
        let missing = || StoreError::Damaged("operations are missing from the log".to_owned());
        let mut last: HashMap<i64, Version> = HashMap::new();
        for (_, thread, stored) in found {
            let Some(stored) = stored else { continue };
            let version = stored.operation.version;
            let follows = match last.insert(*thread, version) {
                Some(before) => before + 1 == version,
                None => version == 1 || self.place_of(*thread, version - 1)?.is_some_and(|at| at <= after),
            };
            if !follows {
                return Err(missing());
            }
        }
        for (thread, version) in last.into_iter().filter(|_| to_the_end) {
            if self.place_of(thread, version + 1)?.is_some() {
                return Err(missing());
            }
        }
        Ok(())
    }

    /// The sequence number of an operation, according to the index.
    fn place_of(&self, thread: i64, version: Version) -> Result<Option<i64>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT sequence FROM operation WHERE thread = ?1 AND version = ?2")?
            .query_row(params![thread, version as i64], |row| row.get(0))
            .optional()?)
    }

    /// The first operation after a sequence number that was made for this request.
    pub fn operation_of_request(
        &self,
        request: RequestId,
        after: i64,
    ) -> Result<Option<StoredOperation>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, id, body FROM operation WHERE sequence > ?1 ORDER BY sequence",
        )?;
        let mut rows = statement.query([after])?;
        while let Some(row) = rows.next()? {
            let ValueRef::Blob(body) = row.get_ref(2)? else { continue };
            // The request is the last field, so other operations need not be decoded.
            if !body.windows(request.bytes().len()).any(|part| part == request.bytes()) {
                continue;
            }
            let stored = checked(row.get(0)?, &row.get::<_, Vec<u8>>(1)?, body)?;
            if stored.operation.request == Some(request) {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// The row numbers of threads with operations after a sequence number.
    pub(crate) fn threads_changed_since(&self, sequence: i64) -> Result<Vec<i64>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT DISTINCT thread FROM operation WHERE sequence > ?1")?;
        let numbers = statement.query_map([sequence], |row| row.get(0))?;
        Ok(numbers.collect::<Result<_, _>>()?)
    }

    /// The last sequence number.
    pub fn last_sequence(&self) -> Result<i64, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT coalesce(max(sequence), 0) FROM operation")?
            .query_row([], |row| row.get(0))?)
    }

    /// The log of one thread, for history walks.
    pub fn log(&self, thread: i64) -> ThreadLog<'_, '_> {
        ThreadLog { queries: self, thread }
    }
}

pub struct ThreadLog<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
}

impl OperationLog for ThreadLog<'_, '_> {
    type Error = StoreError;

    fn step(&self, version: Version) -> Result<LogStep, StoreError> {
        let found = self.queries.operation(self.thread, version)?;
        let found = found.ok_or_else(|| StoreError::Damaged(format!("operation {version} is missing")))?;
        Ok(LogStep::of(&found.operation))
    }

    fn active(&self, version: Version) -> Result<TakeId, StoreError> {
        let found = self.queries.operation(self.thread, version)?;
        let found = found.ok_or_else(|| StoreError::Damaged(format!("operation {version} is missing")))?;
        let state: ThreadState = load(self.queries, found.operation.after)?;
        Ok(state.active)
    }
}

/// Decodes an operation and checks it against its id.
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
