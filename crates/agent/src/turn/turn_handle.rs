//! Sends messages to a running turn in any process.

use std::time::Duration;

use retake_model::agent::ToolStatus;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::turn::TurnMessage;
use retake_store::runtime::{DecisionOutcome, RuntimeDatabase};
use retake_timeline::StoreError;
use retake_timeline::{ReadError, Timeline};

use super::Reply;
use crate::cancel::Cancel;

/// Poll interval of messages.
pub(super) const MESSAGE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Cancels a turn when it is interrupted. Runs in its own thread, because the driver may be blocked by a slow
/// observer; the driver reads and deletes the message later.
pub(super) fn watch(runtime_database: &RuntimeDatabase, take: TakeId, cancel: &Cancel, over: &Cancel) {
    let stops = |(_, message): &(i64, TurnMessage)| *message == TurnMessage::Interrupt;
    while !over.wait_timeout(MESSAGE_POLL_INTERVAL) {
        if runtime_database.messages(take).is_ok_and(|messages| messages.iter().any(stops)) {
            cancel.set();
            return;
        }
    }
}

/// Sends messages to running turns.
pub struct TurnHandle {
    timeline: Timeline,
    runtime_database: RuntimeDatabase,
}

/// Why a message could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No turn is running in the take.
    #[error("no turn is running in this take")]
    NoTurnRunning,
    /// The call does not wait for a decision.
    #[error("call {0:?} does not wait for a decision; it may have run already")]
    NotWaiting(String),
    /// The call was decided elsewhere.
    #[error("call {0:?} was already decided")]
    AlreadyDecided(String),
    /// Reading the thread failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TurnHandle {
    /// Opens the runtime database.
    pub fn new(timeline: &Timeline) -> Result<Self, StoreError> {
        Ok(Self { runtime_database: timeline.store().runtime_database()?, timeline: timeline.clone() })
    }

    /// Interrupts a turn.
    pub fn interrupt(&self, take: TakeId) -> Result<(), SendError> {
        self.send(take, &TurnMessage::Interrupt)
    }

    /// Sends a message to the model before its next request; returns the id of its entry.
    pub fn steer(&self, take: TakeId, text: &str) -> Result<EntryId, SendError> {
        let entry = EntryId::generate(&mut self.timeline.fresh());
        self.send(take, &TurnMessage::Steer { entry, text: text.to_owned() })?;
        Ok(entry)
    }

    /// The same with a given entry id, so that a repeated request is delivered once.
    pub fn steer_as(
        &self,
        thread: ThreadId,
        take: TakeId,
        entry: EntryId,
        text: &str,
    ) -> Result<(), SendError> {
        let reader = self.timeline.read()?;
        let found = reader.state(thread)?.take(&reader.queries(), take).map_err(ReadError::from)?;
        if let Some(take) = found
            && reader.entries(thread, &take).get(entry)?.is_some()
        {
            return Ok(());
        }
        drop(reader);
        // The message may be waiting for its entry to be published.
        let waits = |(_, message): &(_, TurnMessage)| matches!(message, TurnMessage::Steer { entry: sent, .. } if *sent == entry);
        if self.runtime_database.messages(take)?.iter().any(waits) {
            return Ok(());
        }
        self.send(take, &TurnMessage::Steer { entry, text: text.to_owned() })
    }

    /// Decides about a call that waits for approval. Only the first decision counts.
    pub fn decide(&self, thread: ThreadId, take: TakeId, call: &str, reply: &Reply) -> Result<(), SendError> {
        if !self.is_running(take)? {
            return Err(SendError::NoTurnRunning);
        }
        if !is_waiting(&self.timeline, thread, take, call)? {
            return Err(SendError::NotWaiting(call.to_owned()));
        }
        match self.runtime_database.send_decision(take, &reply.message(call))? {
            DecisionOutcome::Sent => Ok(()),
            DecisionOutcome::AlreadyDecided => Err(SendError::AlreadyDecided(call.to_owned())),
            DecisionOutcome::NoTurnRunning => Err(SendError::NoTurnRunning),
        }
    }

    /// Whether a turn is running in a take, in any process.
    pub fn is_running(&self, take: TakeId) -> Result<bool, StoreError> {
        self.timeline.store().is_turn_running(take)
    }

    fn send(&self, take: TakeId, message: &TurnMessage) -> Result<(), SendError> {
        // A record without a lease was left by a crash.
        if self.is_running(take)? && self.runtime_database.send_message(take, message)? {
            Ok(())
        } else {
            Err(SendError::NoTurnRunning)
        }
    }
}

/// Whether a call waits for approval.
fn is_waiting(timeline: &Timeline, thread: ThreadId, take: TakeId, call: &str) -> Result<bool, ReadError> {
    let reader = timeline.read()?;
    let agent = reader.state(thread)?.take(&reader.queries(), take)?.and_then(|take| take.agent);
    let asked = |agent: &retake_model::agent::Agent| {
        agent.state.calls().iter().any(|run| run.call == call && run.status == ToolStatus::Asking)
    };
    Ok(agent.as_ref().is_some_and(asked))
}
