//! The trace: every model request, response and tool call, in order.

use std::ops::Range;

use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::RuntimeDatabase;
use super::pieces::cut;
use crate::StoreError;
use crate::log::queries::digest;

/// Fast: the same text is compressed again and again.
const LEVEL: i32 = 3;
pub(super) const HASH_BYTES: usize = 32;

/// A record to append to the trace.
#[derive(Clone, Copy, Debug)]
pub struct NewTraceRecord<'a> {
    pub thread: ThreadId,
    pub take: TakeId,
    pub time: Timestamp,
    /// The type of event, as one word.
    pub kind: &'a str,
    /// Metadata, as JSON.
    pub facts: &'a str,
    /// The request, response, input or output itself.
    pub body: &'a str,
}

/// A record of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Its number; numbers only grow.
    pub number: i64,
    pub thread: ThreadId,
    pub take: TakeId,
    pub time: Timestamp,
    pub kind: String,
    /// Metadata, as JSON.
    pub facts: String,
    /// The body; `None` if it was not requested, or was destroyed by a redaction.
    pub body: Option<String>,
}

/// Selects records of the trace.
#[derive(Clone, Debug, Default)]
pub struct TraceFilter {
    /// Only this thread; `None` for all.
    pub thread: Option<ThreadId>,
    /// Only these numbers.
    pub numbers: Option<Range<i64>>,
    /// At most this many, the newest.
    pub last: Option<u64>,
    /// Whether to read bodies.
    pub bodies: bool,
}

impl RuntimeDatabase {
    /// Appends a record; returns its number.
    pub fn append_trace(&self, record: NewTraceRecord<'_>) -> Result<i64, StoreError> {
        self.write(|transaction| {
            let mut hashes = Vec::new();
            for piece in cut(record.body) {
                let hash = blake3::hash(piece.as_bytes());
                hashes.extend_from_slice(hash.as_bytes());
                let known = transaction
                    .prepare_cached("SELECT 1 FROM piece WHERE hash = ?1")?
                    .exists([hash.as_bytes()])?;
                if !known {
                    let body = zstd::bulk::compress(piece.as_bytes(), LEVEL)
                        .map_err(|error| StoreError::Damaged(error.to_string()))?;
                    transaction
                        .prepare_cached("INSERT INTO piece (hash, body) VALUES (?1, ?2)")?
                        .execute(params![hash.as_bytes(), body])?;
                }
            }
            transaction
                .prepare_cached(
                    "INSERT INTO comm (thread, take, time, kind, facts, pieces, digest)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    record.thread.key(),
                    record.take.key(),
                    record.time.millis(),
                    record.kind,
                    record.facts,
                    hashes,
                    guard(record.facts, &hashes)
                ])?;
            Ok(transaction.last_insert_rowid())
        })
    }

    /// Reads the selected records, oldest first.
    pub fn read_trace(
        &self,
        filter: &TraceFilter,
        each: &mut dyn FnMut(TraceRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let connection = self.connection();
        let numbers = filter.numbers.clone().unwrap_or(0..i64::MAX);
        let thread = filter.thread.map(|thread| thread.key());
        let last = filter.last.map_or(-1, |last| i64::try_from(last).unwrap_or(i64::MAX));
        let mut statement = connection.prepare_cached(
            "SELECT * FROM (
                 SELECT number, thread, take, time, kind, facts, pieces, digest FROM comm
                 WHERE number >= ?1 AND number < ?2 AND (?3 IS NULL OR thread = ?3)
                 ORDER BY number DESC LIMIT ?4
             ) ORDER BY number",
        )?;
        let mut rows = statement.query(params![numbers.start, numbers.end, thread, last])?;
        while let Some(row) = rows.next()? {
            let (mut record, pieces) = read(row)?;
            if filter.bodies {
                record.body = join(&connection, &pieces)?;
            }
            each(record)?;
        }
        Ok(())
    }
}

fn read(row: &Row<'_>) -> Result<(TraceRecord, Vec<u8>), StoreError> {
    let (facts, pieces): (String, Vec<u8>) = (row.get(5)?, row.get(6)?);
    if guard(&facts, &pieces) != row.get::<_, i64>(7)? {
        return Err(StoreError::Damaged("a record of the trace".to_owned()));
    }
    let record = TraceRecord {
        number: row.get(0)?,
        thread: ThreadId::from_key(row.get(1)?),
        take: TakeId::from_key(row.get(2)?),
        time: Timestamp::from_millis(row.get(3)?),
        kind: row.get(4)?,
        facts,
        body: None,
    };
    Ok((record, pieces))
}

pub(super) fn join(connection: &Connection, pieces: &[u8]) -> Result<Option<String>, StoreError> {
    let mut body = Vec::new();
    let mut statement = connection.prepare_cached("SELECT body FROM piece WHERE hash = ?1")?;
    for hash in pieces.chunks_exact(HASH_BYTES) {
        let mut rows = statement.query([hash])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let packed: Vec<u8> = row.get(0)?;
        let damaged = || StoreError::Damaged("a body in the trace".to_owned());
        let piece = zstd::stream::decode_all(packed.as_slice()).map_err(|_| damaged())?;
        if blake3::hash(&piece).as_bytes() != hash {
            return Err(damaged());
        }
        body.extend_from_slice(&piece);
    }
    let text = String::from_utf8(body);
    text.map(Some).map_err(|_| StoreError::Damaged("a body in the trace".to_owned()))
}

fn guard(facts: &str, pieces: &[u8]) -> i64 {
    digest(&[facts.as_bytes(), &[0], pieces].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn bodies_are_read_back_and_can_be_erased() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let runtime_database =
            Store::open(folder.path()).expect("a store").runtime_database().expect("a runtime database");
        let threads = [ThreadId::from_bytes([1; 16]), ThreadId::from_bytes([2; 16])];
        let body = format!(r#"{{"messages":["{}","{}"]}}"#, "a".repeat(100), "secret ".repeat(20));
        for (number, thread) in [threads[0], threads[1], threads[0]].into_iter().enumerate() {
            let body = format!("{body}{number}");
            let new = NewTraceRecord {
                thread,
                take: TakeId::from_bytes([3; 16]),
                time: Timestamp::from_millis(4),
                kind: "request",
                facts: "{}",
                body: &body,
            };
            assert_eq!(runtime_database.append_trace(new).expect("a record"), number as i64 + 1);
        }
        let read = |filter: TraceFilter| {
            let mut found = Vec::new();
            let mut each = |record: TraceRecord| {
                found.push((record.number, record.body));
                Ok(())
            };
            runtime_database.read_trace(&filter, &mut each).expect("records");
            found
        };
        let whole = TraceFilter { bodies: true, ..TraceFilter::default() };
        assert_eq!(read(whole.clone())[2], (3, Some(format!("{body}2"))));
        let last = TraceFilter { thread: Some(threads[0]), last: Some(1), ..TraceFilter::default() };
        assert_eq!(read(last), [(3, None)]);
        runtime_database.erase_thread(threads[0]).expect("an erasure");
        assert_eq!(read(whole.clone()), [(2, Some(format!("{body}1")))], "other threads keep their records");
        runtime_database.erase_bodies(threads[1]).expect("an erasure");
        assert_eq!(read(whole), [(2, None)]);
    }
}
