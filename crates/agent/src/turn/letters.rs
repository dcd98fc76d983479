//! Sends messages to a running turn in any process.

use std::time::Duration;

use retake_model::agent::ToolStatus;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::turn::Letter;
use retake_timeline::store::{DecisionSent, Ledger, StoreError};
use retake_timeline::{LookError, Timeline};

use super::Reply;
use crate::cancel::Cancel;

/// Poll interval of messages.
pub(super) const LETTERS: Duration = Duration::from_millis(50);

/// Cancels a turn when it is interrupted. Runs in its own thread, because the driver may be blocked by a slow observer; the
/// driver reads and deletes the message later.
pub(super) fn watch(ledger: &Ledger, take: TakeId, cancel: &Cancel, over: &Cancel) {
    let stops = |(_, letter): &(i64, Letter)| *letter == Letter::Interrupt;
    while !over.wait_timeout(LETTERS) {
        if ledger.letters(take).is_ok_and(|letters| letters.iter().any(stops)) {
            cancel.set();
            return;
        }
    }
}

/// Sends messages to running turns.
pub struct Sender {
    timeline: Timeline,
    ledger: Ledger,
}

/// Why a message could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    /// No turn is running in the take.
    #[error("no turn is running in this take")]
    NothingRuns,
    /// The call does not wait for a decision.
    #[error("call {0:?} does not wait for a decision; it may have run already")]
    NotAsked(String),
    /// The call was decided elsewhere.
    #[error("call {0:?} was already decided")]
    Decided(String),
    /// Reading the thread failed.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sender {
    /// Opens the runtime database.
    pub fn new(timeline: &Timeline) -> Result<Self, StoreError> {
        Ok(Self { ledger: timeline.store().ledger()?, timeline: timeline.clone() })
    }

    /// Interrupts a turn.
    pub fn interrupt(&self, take: TakeId) -> Result<(), Unreached> {
        self.send(take, &Letter::Interrupt)
    }

    /// Sends a message to the model before its next request; returns the id of its entry.
    pub fn steer(&self, take: TakeId, text: &str) -> Result<EntryId, Unreached> {
        let entry = EntryId::fresh(&mut self.timeline.fresh());
        self.send(take, &Letter::Steer { entry, text: text.to_owned() })?;
        Ok(entry)
    }

    /// The same with a given entry id, so that a repeated request is delivered once.
    pub fn steer_as(
        &self,
        thread: ThreadId,
        take: TakeId,
        entry: EntryId,
        text: &str,
    ) -> Result<(), Unreached> {
        let looking = self.timeline.look()?;
        let found = looking.state(thread)?.take(&looking.queries(), take).map_err(LookError::from)?;
        if let Some(take) = found
            && looking.entry(&take, entry)?.is_some()
        {
            return Ok(());
        }
        drop(looking);
        // The message may be waiting for its entry to be published.
        let waits =
            |(_, letter): &(_, Letter)| matches!(letter, Letter::Steer { entry: sent, .. } if *sent == entry);
        if self.ledger.letters(take)?.iter().any(waits) {
            return Ok(());
        }
        self.send(take, &Letter::Steer { entry, text: text.to_owned() })
    }

    /// Decides about a call that waits for approval. Only the first decision counts.
    pub fn decide(&self, thread: ThreadId, take: TakeId, call: &str, reply: &Reply) -> Result<(), Unreached> {
        if !self.is_running(take)? {
            return Err(Unreached::NothingRuns);
        }
        if !waits(&self.timeline, thread, take, call)? {
            return Err(Unreached::NotAsked(call.to_owned()));
        }
        match self.ledger.send_decision(take, &reply.letter(call))? {
            DecisionSent::Sent => Ok(()),
            DecisionSent::DecidedBefore => Err(Unreached::Decided(call.to_owned())),
            DecisionSent::NothingRuns => Err(Unreached::NothingRuns),
        }
    }

    /// Whether a turn is running in a take, in any process.
    pub fn is_running(&self, take: TakeId) -> Result<bool, StoreError> {
        self.timeline.store().turn_runs(take)
    }

    fn send(&self, take: TakeId, letter: &Letter) -> Result<(), Unreached> {
        // A record without a lease was left by a crash.
        if self.is_running(take)? && self.ledger.send(take, letter)? {
            Ok(())
        } else {
            Err(Unreached::NothingRuns)
        }
    }
}

/// Whether a call waits for approval.
fn waits(timeline: &Timeline, thread: ThreadId, take: TakeId, call: &str) -> Result<bool, LookError> {
    let looking = timeline.look()?;
    let agent = looking.state(thread)?.take(&looking.queries(), take)?.and_then(|take| take.agent);
    let asked = |agent: &retake_model::agent::Agent| {
        agent.state.calls().iter().any(|run| run.call == call && run.status == ToolStatus::Asking)
    };
    Ok(agent.as_ref().is_some_and(asked))
}
