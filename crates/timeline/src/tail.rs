//! What happens, as it happens: the operations of all threads in the order in which they were written, whoever wrote
//! them.
//!
//! Whoever follows keeps the last sequence that it has seen and asks for what comes after it: nothing is missed and
//! nothing comes twice, also after a pause. How sequences behave is told in the store's `tail`: they only grow, and a
//! purge leaves holes.

use retake_model::content::ContentId;
use retake_model::id::{ThreadId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::StoreError;
use serde::Serialize;

use crate::{LookError, Timeline};

/// A place from which all threads are followed.
pub struct Tail {
    tail: retake_store::Tail,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Happened {
    /// Its place among all that happened.
    pub sequence: i64,
    /// What it was; `None` if a thread was purged, of which nothing is left that could be told.
    #[serde(flatten)]
    pub change: Option<ThreadChange>,
}

/// What happened to a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadChange {
    /// The thread.
    pub thread: ThreadId,
    /// Its version after it.
    pub version: Version,
    /// The operation's name.
    pub operation: ContentId,
    /// What was done.
    pub kind: OperationKind,
    /// Who did it.
    pub actor: Actor,
    /// What it is undone with.
    pub turn: TurnId,
    /// When.
    pub time: Timestamp,
    /// Whether files changed with it.
    pub files_changed: bool,
}

impl Timeline {
    /// Begins to follow what happens.
    pub fn tail(&self) -> Result<Tail, StoreError> {
        Ok(Tail { tail: self.store.tail()? })
    }
}

impl Tail {
    /// The sequence of the last thing that happened. It takes microseconds where nothing did.
    pub fn last(&mut self) -> Result<i64, LookError> {
        Ok(self.tail.last()?)
    }

    /// What happened after a sequence, oldest first, at most that much. A sequence that has not been yet is refused: it
    /// was another store's, or this one has lost its end.
    pub fn since(&mut self, sequence: i64, limit: usize) -> Result<Vec<Happened>, LookError> {
        let last = self.tail.last()?;
        if sequence < 0 || sequence > last {
            return Err(LookError::NoSuchSequence { asked: sequence, last });
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
                Happened { sequence, change }
            })
            .collect())
    }
}
