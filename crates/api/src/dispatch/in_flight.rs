//! Counts requests in flight, which shutdown waits for.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Response;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::watch;

/// The number of requests in flight.
pub(crate) struct InFlight(watch::Sender<usize>);

/// Counts as one request in flight until dropped.
pub(super) struct InFlightGuard(watch::Sender<usize>);

impl InFlight {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(super) fn begin(&self) -> InFlightGuard {
        self.0.send_modify(|count| *count += 1);
        InFlightGuard(self.0.clone())
    }

    /// Waits until no request is in flight.
    pub(crate) async fn nothing(&self) {
        // The channel cannot close, because `self` holds its sender.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
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
