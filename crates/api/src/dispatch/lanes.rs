//! Who waits for whom.
//!
//! ```text
//!   usual   most requests        many at once, further ones wait a while
//!   watch   how the server is    a few at once, whatever the others do
//! ```
//!
//! Of the usual ones, a few at most wait for a model at once, maybe for minutes: if they were all that could be carried
//! out, nobody else would be answered. It is the one who asks the model that is counted, by whatever route it came.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::endpoint::Lane;
use crate::limits::Limits;
use crate::problem::{Code, Problem};

/// How many ask at once how the server is.
const WATCHERS: usize = 4;

/// The room that there is in each lane.
pub(crate) struct Lanes {
    usual: Arc<Semaphore>,
    watch: Arc<Semaphore>,
    asking: Arc<Semaphore>,
}

impl Lanes {
    pub(crate) fn new(limits: &Limits) -> Self {
        let room = |many| Arc::new(Semaphore::new(many));
        Self { usual: room(limits.workers), watch: room(WATCHERS), asking: room(limits.models) }
    }

    /// How many requests are carried out at once at most, over all lanes.
    pub(crate) fn most(limits: &Limits) -> usize {
        limits.workers + WATCHERS
    }

    /// Waits for room; it is given back when it is dropped.
    pub(super) async fn enter(
        &self,
        lane: Lane,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let room = match lane {
            Lane::Usual => &self.usual,
            Lane::Watch => &self.watch,
        };
        match tokio::time::timeout(patience, Arc::clone(room).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Problem::new(Code::Unavailable, "the server has too much to do")),
        }
    }

    /// The room to wait for a model; there is some at once, or not.
    pub(crate) fn ask_model(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Code::TooMany, "as many requests wait for a model as may at once");
        Arc::clone(&self.asking).try_acquire_owned().map_err(full)
    }
}
