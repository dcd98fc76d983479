//! The event stream of one client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use retake_model::id::ThreadId;
use retake_timeline::Timeline;
use tokio::sync::mpsc;
use tracing::debug;

use super::{Event, EventBus, PAGE};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Interval of keep-alive comments, by which both sides detect a dead connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Chunks buffered for a slow client.
const MAX_QUEUED_CHUNKS: usize = 4;

/// Which events a client wants.
#[derive(Clone, Debug)]
pub(crate) struct StreamRequest {
    /// The last event that it received; `None` to start now.
    pub(crate) after: Option<i64>,
    /// Only events of this thread.
    pub(crate) thread: Option<ThreadId>,
    /// Whether to send live events of turns.
    pub(crate) turns: bool,
}

/// Opens a stream.
pub(crate) fn open(service: &Service, token: [u8; 32], following: StreamRequest) -> Result<Body, Problem> {
    let permit = service.admission.admit_stream()?;
    let newest = service.timeline.read()?.queries().last_sequence()?;
    let after = following.after.unwrap_or(newest);
    if after > newest || after < 0 {
        let detail = "the last event is not in this store; read everything again and start without `after`";
        return Err(Problem::new(Code::Conflict, detail).with("newest", newest));
    }
    // The token of this client may be newer than the last check.
    service.event_bus.refresh_token();
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let metrics = Arc::clone(&service.metrics);
    let mut stream = Stream {
        timeline: service.timeline.clone(),
        event_bus: Arc::clone(&service.event_bus),
        write_timeout: service.admission.limits.write_timeout,
        sender,
        after,
        following,
        token,
    };
    tokio::spawn(async move {
        metrics.streams.inc();
        stream.run().await;
        metrics.streams.dec();
        drop(permit);
    });
    Ok(Body::new(ChunkedBody(receiver)))
}

struct Stream {
    timeline: Timeline,
    event_bus: Arc<EventBus>,
    write_timeout: Duration,
    sender: mpsc::Sender<Bytes>,
    after: i64,
    following: StreamRequest,
    token: [u8; 32],
}

/// The stream has ended: the client left or does not read, the token changed, or the server stops.
struct StreamEnded;

impl Stream {
    async fn run(&mut self) {
        let event_bus = Arc::clone(&self.event_bus);
        let (mut newest, mut token) = (event_bus.newest.subscribe(), event_bus.token.subscribe());
        let live = event_bus.live.listen();
        // A client that loses the connection at once knows where to resume.
        let hello = format!("retry: 1000\nid: {}\nevent: hello\ndata: {{\"after\":{0}}}\n\n", self.after);
        let mut state = self.send(hello.into()).await;
        while state.is_ok() {
            newest.mark_unchanged();
            token.mark_unchanged();
            if !self.token_is_valid() || self.catch_up().await.is_err() {
                break;
            }
            state = tokio::select! {
                // The end comes last: the last events of turns say how the server left them.
                biased;
                changed = newest.changed() => changed.map_err(|_| StreamEnded),
                changed = token.changed() => changed.map_err(|_| StreamEnded),
                received = live.next() => {
                    // Missed text is in the entry that it becomes.
                    if received.thread.is_none_or(|thread| self.following.turns && self.wants(thread)) { self.send(received.text.clone().into()).await } else { Ok(()) }
                }
                () = self.sender.closed() => Err(StreamEnded),
                () = event_bus.over.wait() => Err(StreamEnded),
                () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => self.send(Bytes::from_static(b": alive\n\n")).await,
            };
        }
    }

    /// Sends all pending events.
    async fn catch_up(&mut self) -> Result<(), StreamEnded> {
        loop {
            let events = match self.event_bus.recent_after(self.after) {
                Some(events) => events,
                None => self.read().await?,
            };
            // Checked now, because the token is refreshed after these events were read.
            if !self.token_is_valid() {
                return Err(StreamEnded);
            }
            let Some(last) = events.last().map(|event| event.sequence) else { return Ok(()) };
            let wanted: String = events
                .iter()
                .filter(|event| event.thread.is_none_or(|thread| self.wants(thread)))
                .map(|event| &*event.text)
                .collect();
            if !wanted.is_empty() {
                self.send(wanted.into()).await?;
            }
            self.after = last;
        }
    }

    /// Reads events from the log that are no longer in memory.
    async fn read(&self) -> Result<Vec<Event>, StreamEnded> {
        let (timeline, event_bus, after) = (self.timeline.clone(), Arc::clone(&self.event_bus), self.after);
        let read = move || -> Result<Vec<Event>, Problem> {
            let events = super::take_chunk(timeline.tail()?.since(after, PAGE)?.iter().map(Event::of));
            event_bus.refresh_token();
            Ok(events)
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(events)) => Ok(events),
            _ => Err(StreamEnded),
        }
    }

    /// Whether the token of the stream is still valid, as of the last check.
    fn token_is_valid(&self) -> bool {
        *self.event_bus.token.borrow() == Some(self.token)
    }

    fn wants(&self, thread: ThreadId) -> bool {
        self.following.thread.is_none_or(|wanted| wanted == thread)
    }

    /// Sends a chunk; fails if the client does not read.
    async fn send(&self, piece: Bytes) -> Result<(), StreamEnded> {
        match self.sender.send_timeout(piece, self.write_timeout).await {
            Ok(()) => Ok(()),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                debug!(after = self.after, "closing a stream that is not read");
                Err(StreamEnded)
            }
            // Usually the connection times out first and counts it.
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(StreamEnded),
        }
    }
}

/// A body of chunks.
pub(crate) struct ChunkedBody(pub(crate) mpsc::Receiver<Bytes>);

impl hyper::body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
