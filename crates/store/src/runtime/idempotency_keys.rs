//! Idempotency keys: a repeated request runs once.
//!
//! ```text
//!   begin ──► New ─────────────► run it ──► finish ──► Answered, the same bytes each time
//!         ├─► InProgress         owner alive: wait. Owner dead: take over, and search the log since `sequence`
//!         ├─► Answered           for an operation of this request; if there is one, the request was completed
//!         └─► KeyReused          the same key with a different request
//! ```
//!
//! The row is on disk before the request runs. Afterwards the log of operations records under the same key that it ran, so the answer need not be synced: a lost answer can be recomputed.

use retake_model::id::RequestId;
use retake_model::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::RuntimeDatabase;
use super::group_commit::Durability;
use crate::StoreError;
use crate::log::queries::digest;

/// The most requests that are remembered.
const MAX_REQUESTS: i64 = 100_000;

/// The state of a request that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// A new request: the caller runs it.
    New,
    /// Another process is running it.
    InProgress {
        owner: String,
        /// The end of the log when it began.
        sequence: i64,
    },
    /// It was completed with this answer.
    Answered {
        /// The HTTP status.
        status: u16,
        answer: Vec<u8>,
    },
    /// It was completed, and its answer erased because it might have contained purged or redacted text.
    AnswerErased {
        /// The HTTP status.
        status: u16,
        /// The end of the log when it began.
        sequence: i64,
    },
    /// The key was used for a different request.
    KeyReused,
}

struct RequestRow {
    began: i64,
    fingerprint: Vec<u8>,
    sequence: i64,
    owner: String,
    status: Option<u16>,
}

impl RuntimeDatabase {
    /// Records that a request begins, if it is new; otherwise returns its state. `fingerprint` covers the whole
    /// request, `sequence` is the end of the log before it runs.
    pub fn begin_request(
        &self,
        request: RequestId,
        fingerprint: &[u8; 32],
        sequence: i64,
        owner: &str,
        now: Timestamp,
    ) -> Result<RequestState, StoreError> {
        let fingerprint = fingerprint.to_vec();
        let new =
            RequestRow { began: now.millis(), fingerprint, sequence, owner: owner.to_owned(), status: None };
        self.write_grouped(Durability::Immediate, move |connection| {
            let Some(known) = read(connection, request)? else {
                insert(connection, request, &new)?;
                return Ok(RequestState::New);
            };
            if known.fingerprint != new.fingerprint {
                return Ok(RequestState::KeyReused);
            }
            let RequestRow { sequence, owner, status, .. } = known;
            let Some(status) = status else { return Ok(RequestState::InProgress { owner, sequence }) };
            Ok(match answer(connection, request)? {
                Some(answer) => RequestState::Answered { status, answer },
                None => RequestState::AnswerErased { status, sequence },
            })
        })
    }

    /// Records the answer to a request.
    pub fn finish_request(&self, request: RequestId, status: u16, answer: Vec<u8>) -> Result<(), StoreError> {
        self.write_grouped(Durability::Deferred, move |connection| {
            // An expired request is not recorded again.
            let Some(known) = read(connection, request)? else { return Ok(()) };
            let known = RequestRow { status: Some(status), ..known };
            connection
                .prepare_cached(
                    "UPDATE request SET status = ?2, digest = ?3, answer = ?4, answer_digest = ?5
                     WHERE name = ?1",
                )?
                .execute(params![request.bytes(), status, guard(request, &known), answer, digest(&answer)])?;
            Ok(())
        })
    }

    /// Removes a request that was refused: it changed nothing, and may be repeated.
    pub fn abandon_request(&self, request: RequestId) -> Result<(), StoreError> {
        self.write_grouped(Durability::Deferred, move |connection| {
            connection
                .prepare_cached("DELETE FROM request WHERE name = ?1 AND status IS NULL")?
                .execute([request.bytes()])?;
            Ok(())
        })
    }

    /// Transfers an unfinished request to another owner; returns whether `from` still owned it.
    pub fn take_over_request(&self, request: RequestId, from: &str, to: &str) -> Result<bool, StoreError> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.write_grouped(Durability::Immediate, move |connection| {
            let Some(known) = read(connection, request)? else { return Ok(false) };
            if known.owner != from || known.status.is_some() {
                return Ok(false);
            }
            let known = RequestRow { owner: to, ..known };
            connection
                .prepare_cached("UPDATE request SET owner = ?2, digest = ?3 WHERE name = ?1")?
                .execute(params![request.bytes(), known.owner, guard(request, &known)])?;
            Ok(true)
        })
    }

    /// Removes requests that began earlier, and the oldest beyond the limit; returns how many.
    pub fn expire_requests(&self, time: Timestamp) -> Result<usize, StoreError> {
        self.expire_requests_over(time, MAX_REQUESTS)
    }

    fn expire_requests_over(&self, time: Timestamp, most: i64) -> Result<usize, StoreError> {
        self.write(|transaction| {
            let old = transaction.execute("DELETE FROM request WHERE began < ?1", [time.millis()])?;
            let many = transaction.execute(
                "DELETE FROM request WHERE rowid IN
                     (SELECT rowid FROM request ORDER BY began DESC, rowid DESC LIMIT -1 OFFSET ?1)",
                [most],
            )?;
            Ok(old + many)
        })
    }
}

/// Destroys all stored answers and keeps their requests. Which texts they contain is not checked.
pub(super) fn erase_answers(connection: &Connection) -> Result<(), StoreError> {
    connection
        .execute("UPDATE request SET answer = NULL, answer_digest = NULL WHERE answer IS NOT NULL", [])?;
    Ok(())
}

fn insert(connection: &Connection, request: RequestId, new: &RequestRow) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO request (name, began, fingerprint, sequence, owner, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            request.bytes(),
            new.began,
            new.fingerprint,
            new.sequence,
            new.owner,
            guard(request, new)
        ])?;
    Ok(())
}

fn read(connection: &Connection, request: RequestId) -> Result<Option<RequestRow>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT began, fingerprint, sequence, owner, status, digest FROM request WHERE name = ?1",
        )?
        .query_row([request.bytes()], |row| {
            let record = RequestRow {
                began: row.get(0)?,
                fingerprint: row.get(1)?,
                sequence: row.get(2)?,
                owner: row.get(3)?,
                status: row.get(4)?,
            };
            Ok((record, row.get::<_, i64>(5)?))
        })
        .optional()?;
    match found {
        Some((record, found)) if guard(request, &record) != found => Err(damaged()),
        found => Ok(found.map(|(record, _)| record)),
    }
}

fn answer(connection: &Connection, request: RequestId) -> Result<Option<Vec<u8>>, StoreError> {
    let found: (Option<Vec<u8>>, Option<i64>) = connection
        .prepare_cached("SELECT answer, answer_digest FROM request WHERE name = ?1")?
        .query_row([request.bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        (Some(answer), Some(guard)) if digest(&answer) == guard => Ok(Some(answer)),
        (None, None) => Ok(None),
        _ => Err(damaged()),
    }
}

fn guard(request: RequestId, record: &RequestRow) -> i64 {
    let status = record.status.map_or(-1, i64::from);
    digest(
        &[
            request.bytes().as_slice(),
            &record.began.to_le_bytes(),
            &record.fingerprint,
            &record.sequence.to_le_bytes(),
            &status.to_le_bytes(),
            record.owner.as_bytes(),
        ]
        .concat(),
    )
}

fn damaged() -> StoreError {
    StoreError::Damaged("a request in the runtime database".to_owned())
}

#[cfg(test)]
mod tests {
    use retake_model::id::ThreadId;

    use super::*;
    use crate::Store;

    const ONE: [u8; 32] = [1; 32];
    const TWO: [u8; 32] = [2; 32];

    #[test]
    fn a_request_runs_once_and_repeats_its_answer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let (here, there) = (
            store.runtime_database().expect("a runtime database"),
            store.runtime_database().expect("a runtime database"),
        );
        let request = RequestId::of(b"key");
        let begin = |runtime_database: &RuntimeDatabase, fingerprint: &[u8; 32], owner: &str| {
            runtime_database
                .begin_request(request, fingerprint, 7, owner, Timestamp::from_millis(100))
                .expect("a write")
        };
        let by = |owner: &str| RequestState::InProgress { owner: owner.to_owned(), sequence: 7 };
        assert_eq!(begin(&here, &ONE, "a"), RequestState::New);
        assert_eq!(begin(&there, &ONE, "b"), by("a"));
        assert_eq!(begin(&there, &TWO, "b"), RequestState::KeyReused);
        here.abandon_request(request).expect("a write");
        assert_eq!(begin(&there, &TWO, "b"), RequestState::New, "it changed nothing");
        assert!(!here.take_over_request(request, "a", "c").expect("a query"), "it is b's");
        assert!(here.take_over_request(request, "b", "c").expect("a query"));
        assert!(!there.take_over_request(request, "b", "d").expect("a query"), "one of two wins");
        assert_eq!(begin(&there, &TWO, "b"), by("c"));
        here.finish_request(request, 201, b"made".to_vec()).expect("a write");
        let answered = RequestState::Answered { status: 201, answer: b"made".to_vec() };
        let again = store.runtime_database().expect("a runtime database");
        for runtime_database in [&here, &there, &again] {
            assert_eq!(begin(runtime_database, &TWO, "e"), answered);
        }
        assert_eq!(begin(&here, &ONE, "e"), RequestState::KeyReused);
        here.abandon_request(request).expect("a query");
        assert_eq!(begin(&here, &TWO, "e"), answered, "an answered request is not abandoned");
        assert!(!here.take_over_request(request, "c", "e").expect("a query"));
        here.erase_thread(ThreadId::from_bytes([9; 16])).expect("an erasure");
        assert_eq!(begin(&here, &TWO, "e"), RequestState::AnswerErased { status: 201, sequence: 7 });
        assert_eq!(here.expire_requests(Timestamp::from_millis(100)).expect("a query"), 0);
        assert_eq!(here.expire_requests(Timestamp::from_millis(101)).expect("a query"), 1);
        assert_eq!(begin(&here, &ONE, "a"), RequestState::New);
    }

    #[test]
    fn concurrent_requests_run_once_and_none_is_lost() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let runtime_databases = [
            store.runtime_database().expect("a runtime database"),
            store.runtime_database().expect("a runtime database"),
        ];
        let (threads, each) = (16, 20_u32);
        let won: usize = std::thread::scope(|scope| {
            let race = |number: usize| {
                let runtime_database = &runtime_databases[number % 2];
                scope.spawn(move || {
                    let mut won = 0;
                    for question in 0..each {
                        let request = RequestId::of(&question.to_le_bytes());
                        let now = Timestamp::from_millis(i64::from(question));
                        let begun =
                            runtime_database.begin_request(request, &ONE, 0, &number.to_string(), now);
                        if begun.expect("a write") == RequestState::New {
                            runtime_database
                                .finish_request(request, 200, question.to_le_bytes().to_vec())
                                .expect("a write");
                            won += 1;
                        }
                    }
                    won
                })
            };
            let racing: Vec<_> = (0..threads).map(race).collect();
            racing.into_iter().map(|one| one.join().expect("no panic")).sum()
        });
        assert_eq!(won, each as usize);
        let known = |question: u32| {
            let request = RequestId::of(&question.to_le_bytes());
            runtime_databases[0]
                .begin_request(request, &ONE, 0, "", Timestamp::from_millis(1000))
                .expect("a query")
        };
        for question in 0..each {
            let answer = question.to_le_bytes().to_vec();
            assert_eq!(known(question), RequestState::Answered { status: 200, answer });
        }
        assert_eq!(
            runtime_databases[1].expire_requests_over(Timestamp::from_millis(0), 5).expect("a query"),
            15
        );
        assert!(matches!(known(19), RequestState::Answered { .. }), "the newest are kept");
        assert_eq!(known(14), RequestState::New);
    }
}
