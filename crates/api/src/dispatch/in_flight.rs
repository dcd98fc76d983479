//! Counts requests in flight, which shutdown waits for.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Response;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::watch;

/// The number of requests in flight, and the id of the next one.
pub(crate) struct InFlight {
    count: watch::Sender<usize>,
    next_id: AtomicU64,
}

/// Counts as one request in flight until dropped.
pub(super) struct InFlightGuard(watch::Sender<usize>);

impl InFlight {
    pub(super) fn new(seed: u64) -> Self {
        Self { count: watch::Sender::new(0), next_id: AtomicU64::new(seed << 20) }
    }

    /// Counts a request, and gives it a unique id for the log.
    pub(super) fn begin(&self) -> (InFlightGuard, String) {
        self.count.send_modify(|count| *count += 1);
        let id = format!("{:016x}", self.next_id.fetch_add(1, Ordering::Relaxed));
        (InFlightGuard(self.count.clone()), id)
    }

    /// Waits until no request is in flight.
    pub(crate) async fn nothing(&self) {
        // The channel cannot close, because `self` holds its sender.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl InFlightGuard {
    /// Keeps the request in flight until its body is sent.
    pub(super) fn hold_until_sent(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| {
            if body.is_end_stream() { body } else { Body::new(GuardedBody { body, _answering: self }) }
        })
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A body with the guard of its request.
struct GuardedBody {
    body: Body,
    _answering: InFlightGuard,
}

impl hyper::body::Body for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
