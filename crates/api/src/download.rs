//! Responses that are too large for memory. They are written completely to an unnamed file before the first byte is sent,
//! so that a failure is reported as a problem and no client receives a truncated file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::problem::Problem;
use crate::service::Service;

/// Bytes per chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks buffered for a slow client.
const MAX_QUEUED_CHUNKS: usize = 4;

/// Writes a response to a file, then streams it.
pub(crate) fn stream_file(
    service: &Service,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Problem>,
) -> Result<Body, Problem> {
    let permit = service.admission.admit_stream()?;
    // Next to the store, because a temporary folder may be in memory.
    let mut out = BufWriter::new(tempfile::tempfile_in(service.timeline.store().folder())?);
    write(&mut out)?;
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let left = file.stream_position()?;
    file.rewind()?;
    let (sender, pieces) = mpsc::channel(MAX_QUEUED_CHUNKS);
    tokio::task::spawn_blocking(move || {
        send(&file, &sender);
        drop(permit);
    });
    Ok(Body::new(SizedBody { pieces, left }))
}

/// Sends a file in chunks until it ends or the client disconnects.
fn send(file: &File, sender: &mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let mut piece = Vec::with_capacity(CHUNK_BYTES);
        let read = file.take(CHUNK_BYTES as u64).read_to_end(&mut piece);
        let (piece, last) = match read {
            Ok(0) => return,
            Ok(_) => (Ok(Bytes::from(piece)), false),
            Err(error) => (Err(error), true),
        };
        if sender.blocking_send(piece).is_err() || last {
            return;
        }
    }
}

/// A body with a known length, so that clients detect truncation.
struct SizedBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

impl hyper::body::Body for SizedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = std::task::ready!(self.pieces.poll_recv(context));
        if let Some(Ok(piece)) = &next {
            self.left = self.left.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
