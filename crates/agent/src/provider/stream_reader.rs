//! Reads events from the bytes of a response, for all framings.

use super::Platform;
#[cfg(feature = "bedrock")]
use super::aws_frames::{BadFrames, FrameReader};
use super::decoder;
use super::events::{Event, EventReader, EventStreamError};
use super::fault::{CallError, DecodeError};

/// Collects events from the bytes of a response.
pub(super) enum StreamReader {
    Events(EventReader),
    #[cfg(feature = "bedrock")]
    Frames(FrameReader),
}

impl StreamReader {
    pub(super) fn of(platform: Platform) -> Self {
        match platform {
            #[cfg(feature = "bedrock")]
            Platform::Bedrock => Self::Frames(FrameReader::default()),
            _ => Self::Events(EventReader::new()),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), CallError> {
        match self {
            Self::Events(reader) => reader.feed(bytes, events).map_err(decode_error),
            #[cfg(feature = "bedrock")]
            Self::Frames(reader) => reader.feed(bytes, events).map_err(frame_error),
        }
    }

    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), CallError> {
        match self {
            Self::Events(reader) => reader.finish().map(|last| events.extend(last)).map_err(decode_error),
            #[cfg(feature = "bedrock")]
            Self::Frames(reader) => reader.finish().map_err(frame_error),
        }
    }
}

#[cfg(feature = "bedrock")]
fn frame_error(error: BadFrames) -> CallError {
    decoder::error(match error {
        BadFrames::Garbled(what) => DecodeError::protocol(what),
        BadFrames::TooLarge => DecodeError::TooLarge,
    })
}

fn decode_error(error: EventStreamError) -> CallError {
    decoder::error(match error {
        EventStreamError::NotText => DecodeError::protocol(error.to_string()),
        EventStreamError::TooLarge => DecodeError::TooLarge,
    })
}
