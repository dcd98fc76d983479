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
            Self::Events(reader) => reader.feed(bytes, events).map_err(garbled),
            #[cfg(feature = "bedrock")]
            Self::Frames(reader) => reader.feed(bytes, events).map_err(garbled_frames),
        }
    }

    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), CallError> {
        match self {
            Self::Events(reader) => reader.finish().map(|last| events.extend(last)).map_err(garbled),
            #[cfg(feature = "bedrock")]
            Self::Frames(reader) => reader.finish().map_err(garbled_frames),
        }
    }
}

#[cfg(feature = "bedrock")]
fn garbled_frames(bad: BadFrames) -> CallError {
    decoder::error(match bad {
        BadFrames::Garbled(what) => DecodeError::protocol(what),
        BadFrames::TooLarge => DecodeError::TooLarge,
    })
}

fn garbled(bad: EventStreamError) -> CallError {
    decoder::error(match bad {
        EventStreamError::NotText => DecodeError::protocol(bad.to_string()),
        EventStreamError::TooLarge => DecodeError::TooLarge,
    })
}
