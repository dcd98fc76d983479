//! Admission: how many requests run at once.
//!
//! ```text
//!   normal       most requests           many at once, further ones wait
//!   monitoring   health and metrics      a few at once, independent of the others
//! ```
//!
//! Requests that wait for a model may take minutes, so that their number is limited further: they must not block all
//! other requests. The limit applies to the model call, whichever route makes it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::endpoint::Lane;
use crate::limits::Limits;
use crate::problem::{Code, Problem};

/// Concurrent monitoring requests.
const WATCHERS: usize = 4;

/// The permits of each class.
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

    /// Maximum concurrent requests of all classes.
    pub(crate) fn most(limits: &Limits) -> usize {
        limits.workers + WATCHERS
    }

    /// Waits for a permit, which is released on drop.
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
            _ => Err(Problem::new(Code::Unavailable, "the server is overloaded")),
        }
    }

    /// A permit to wait for a model; fails at once if there is none.
    pub(crate) fn ask_model(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Code::TooMany, "too many requests are waiting for a model");
        Arc::clone(&self.asking).try_acquire_owned().map_err(full)
    }
}
