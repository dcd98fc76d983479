//! Letters: how anybody, in whatever process, reaches a turn that runs.

use retake_model::id::{EntryId, TakeId};
use retake_model::turn::Letter;
use retake_timeline::Timeline;
use retake_timeline::store::{Ledger, StoreError};

use super::Reply;

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

    /// Decides about a call that waits.
    pub fn decide(&self, take: TakeId, call: &str, decision: Reply) -> Result<(), Unreached> {
        let Reply { allowed, remember, reason } = decision;
        self.send(take, &Letter::Decide { call: call.to_owned(), allowed, remember, reason })
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
