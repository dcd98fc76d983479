//! Follows the operations of all threads in the order in which they were written, by any process.
//!
//! A follower stores the last sequence number that it has processed and asks for everything after it: it misses nothing
//! and gets nothing twice, even after a pause. Sequence numbers only grow, and a purge leaves gaps (see the store's
//! `tail`).

use retake_model::content::ContentId;
use retake_model::id::{ThreadId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::StoreError;
use serde::Serialize;

use crate::{ReadError, Timeline};

/// A follower of all threads.
pub struct Tail {
    tail: retake_store::Tail,
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEvent {
    /// Sequence number.
    pub sequence: i64,
    /// The change; `null` if a thread was purged.
    #[serde(flatten)]
    pub change: Option<ThreadChange>,
}

/// A change of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadChange {
    /// The thread.
    pub thread: ThreadId,
    /// The version after the change.
    pub version: Version,
    /// Id of the operation.
    pub operation: ContentId,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Its actor.
    pub actor: Actor,
    /// The turn with which it is undone.
    pub turn: TurnId,
    /// Its time.
    pub time: Timestamp,
    /// Whether it changed files.
    pub files_changed: bool,
}

impl Timeline {
    /// Starts a follower.
    pub fn tail(&self) -> Result<Tail, StoreError> {
        Ok(Tail { tail: self.store.tail()? })
    }
}

impl Tail {
    /// The last sequence number. Takes microseconds if nothing changed.
    pub fn last(&mut self) -> Result<i64, ReadError> {
        Ok(self.tail.last()?)
    }

    /// Events after a sequence number, oldest first, at most `limit`. Fails for a number beyond the last: it is from
    /// another store, or this one has lost its end.
    pub fn since(&mut self, sequence: i64, limit: usize) -> Result<Vec<LogEvent>, ReadError> {
        let last = self.tail.last()?;
        if sequence < 0 || sequence > last {
            return Err(ReadError::NoSuchSequence { asked: sequence, last });
        }
        let rows = self.tail.since(sequence, limit)?;
        Ok(rows
            .into_iter()
            .map(|(sequence, _, stored)| {
                let change = stored.map(|stored| ThreadChange {
                    thread: stored.operation.thread,
                    version: stored.operation.version,
                    operation: stored.id,
                    kind: stored.operation.kind,
                    actor: stored.operation.actor,
                    turn: stored.operation.turn,
                    time: stored.operation.time,
                    files_changed: stored.operation.files.is_some_and(|files| files.before != files.after),
                });
                LogEvent { sequence, change }
            })
            .collect())
    }
}
