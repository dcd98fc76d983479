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

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::InFlight;
use crate::endpoint::AdmissionClass;
use crate::limits::Limits;
use crate::problem::{Code, Problem};

/// Concurrent monitoring requests.
const MONITORING_WORKERS: usize = 4;

/// The limits, and the permits that enforce them.
pub(crate) struct Admission {
    pub(crate) limits: Limits,
    pub(crate) in_flight: InFlight,
    normal: Arc<Semaphore>,
    monitoring: Arc<Semaphore>,
    model_requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Bytes of request bodies in memory.
    pub(super) bodies: Arc<Semaphore>,
    /// JSON values of request bodies that are being parsed.
    pub(super) values: Arc<Semaphore>,
}

impl Admission {
    pub(crate) fn new(limits: Limits, seed: u64) -> Self {
        let permits = |many| Arc::new(Semaphore::new(many));
        Self {
            in_flight: InFlight::new(seed),
            normal: permits(limits.workers),
            monitoring: permits(MONITORING_WORKERS),
            model_requests: permits(limits.models),
            streams: permits(limits.streams),
            bodies: permits(limits.bodies),
            values: permits(limits.values),
            limits,
        }
    }

    /// Maximum concurrent requests of all classes.
    pub(crate) fn max_workers(limits: &Limits) -> usize {
        limits.workers + MONITORING_WORKERS
    }

    /// Waits for a permit, which is released on drop.
    pub(super) async fn admit(
        &self,
        admission_class: AdmissionClass,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let permits = match admission_class {
            AdmissionClass::Normal => &self.normal,
            AdmissionClass::Monitoring => &self.monitoring,
        };
        match tokio::time::timeout(self.limits.queue, Arc::clone(permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Problem::new(Code::Unavailable, "the server is overloaded")),
        }
    }

    /// A permit to wait for a model; fails at once if there is none.
    pub(crate) fn admit_model_request(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Code::TooMany, "too many requests are waiting for a model");
        Arc::clone(&self.model_requests).try_acquire_owned().map_err(full)
    }

    /// A permit to stream a response; fails at once if there is none.
    pub(crate) fn admit_stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Code::TooMany, "too many streams are open");
        Arc::clone(&self.streams).try_acquire_owned().map_err(full)
    }
}
