//! Letters: how anybody, in whatever process, reaches a turn that runs.

use std::time::Duration;

use retake_model::agent::ToolStatus;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::turn::Letter;
use retake_timeline::store::{DecisionSent, Ledger, StoreError};
use retake_timeline::{LookError, Timeline};

use super::Reply;
use crate::cancel::Cancel;

/// How often letters are read while a tool runs or a model answers.
pub(super) const LETTERS: Duration = Duration::from_millis(50);

/// Cancels when somebody wants the turn to end, until it is over. In a thread of its own, since the driver may wait
/// for a reader of its events; the driver reads the letter itself when it gets to it.
pub(super) fn watch(ledger: &Ledger, take: TakeId, cancel: &Cancel, over: &Cancel) {
    let stops = |(_, letter): &(i64, Letter)| *letter == Letter::Interrupt;
    while !over.wait_timeout(LETTERS) {
        if ledger.letters(take).is_ok_and(|letters| letters.iter().any(stops)) {
            cancel.set();
            return;
        }
    }
}

/// Sends letters to turns.
pub struct Sender {
    timeline: Timeline,
    ledger: Ledger,
}

/// Why a letter reached nobody.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    /// No turn runs there.
    #[error("no turn is running in this take")]
    NothingRuns,
    /// The call does not wait for anybody.
    #[error("call {0:?} does not wait for a decision; it may have run, or was never made")]
    NotAsked(String),
    /// Somebody else was first.
    #[error("call {0:?} was decided on already")]
    Decided(String),
    /// The thread cannot be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sender {
    /// A sender of letters.
    pub fn new(timeline: &Timeline) -> Result<Self, StoreError> {
        Ok(Self { ledger: timeline.store().ledger()?, timeline: timeline.clone() })
    }

    /// Asks a turn to end as soon as possible.
    pub fn interrupt(&self, take: TakeId) -> Result<(), Unreached> {
        self.send(take, &Letter::Interrupt)
    }

    /// Tells the model something before it is called again; gives the entry that the message becomes.
    pub fn steer(&self, take: TakeId, text: &str) -> Result<EntryId, Unreached> {
        let entry = EntryId::fresh(&mut self.timeline.fresh());
        self.send(take, &Letter::Steer { entry, text: text.to_owned() })?;
        Ok(entry)
    }

    /// The same, where the entry has an identity of the caller's: whoever asks again is heard once.
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
        // Until its entry is published, the letter is all there is of it.
        let waits =
            |(_, letter): &(_, Letter)| matches!(letter, Letter::Steer { entry: sent, .. } if *sent == entry);
        if self.ledger.letters(take)?.iter().any(waits) {
            return Ok(());
        }
        self.send(take, &Letter::Steer { entry, text: text.to_owned() })
    }

    /// Decides about a call that waits for a person. Of several who do, exactly one is heard.
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

    /// Whether a turn runs in a take, in whatever process.
    pub fn is_running(&self, take: TakeId) -> Result<bool, StoreError> {
        self.timeline.store().turn_runs(take)
    }

    fn send(&self, take: TakeId, letter: &Letter) -> Result<(), Unreached> {
        // A record without a holder of the lease is what a crash left.
        if self.is_running(take)? && self.ledger.send(take, letter)? {
            Ok(())
        } else {
            Err(Unreached::NothingRuns)
        }
    }
}

/// Whether a call waits for a person.
fn waits(timeline: &Timeline, thread: ThreadId, take: TakeId, call: &str) -> Result<bool, LookError> {
    let looking = timeline.look()?;
    let agent = looking.state(thread)?.take(&looking.queries(), take)?.and_then(|take| take.agent);
    let asked = |agent: &retake_model::agent::Agent| {
        agent.state.calls().iter().any(|run| run.call == call && run.status == ToolStatus::Asking)
    };
    Ok(agent.as_ref().is_some_and(asked))
}
