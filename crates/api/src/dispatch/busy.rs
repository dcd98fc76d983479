//! How many requests are being answered: a server that stops waits for these, and for nobody else.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Response;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::watch;

/// Counts requests that are being answered.
pub(crate) struct Busy(watch::Sender<usize>);

/// A request that is being answered, until it is dropped.
pub(super) struct Answering(watch::Sender<usize>);

impl Busy {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// One more request.
    pub(super) fn begin(&self) -> Answering {
        self.0.send_modify(|count| *count += 1);
        Answering(self.0.clone())
    }

    /// Waits until no request is being answered.
    pub(crate) async fn nothing(&self) {
        // It cannot close while it is held here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Answering {
    /// The answer is being given until its body is.
    pub(super) fn until_given(self, response: Response<Body>) -> Response<Body> {
        response
            .map(|body| if body.is_end_stream() { body } else { Body::new(Given { body, _answering: self }) })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A body that is being given.
struct Given {
    body: Body,
    _answering: Answering,
}

impl hyper::body::Body for Given {
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
