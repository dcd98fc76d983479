//! Decodes the frames of an AWS event stream, which contain events of the Anthropic wire.
//!
//! ```text
//!   length, header length, checksum │ :message-type, :event-type … │ {"bytes": BASE64 event} │ checksum
//! ```

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_eventstream::smithy::parse_response_headers;
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::json;

use super::assembly::ANSWER_BYTES;
use super::events::Event;

/// The two lengths and the checksum at the start of every frame.
const PRELUDE: usize = 12;

/// Collects events from the frames of a stream.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    buffered: Vec<u8>,
}

/// Why bytes are not valid frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadFrames {
    /// Larger than the limit for answers.
    TooLarge,
    /// Any other error.
    Garbled(String),
}

impl FrameReader {
    /// Adds bytes, and appends every completed event to `events`.
    pub(super) fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), BadFrames> {
        self.buffered.extend_from_slice(bytes);
        let mut done = 0;
        let read = loop {
            let rest = &self.buffered[done..];
            let Some(length) = rest.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize)
            else {
                break Ok(());
            };
            if length > ANSWER_BYTES {
                break Err(BadFrames::TooLarge);
            }
            if length < PRELUDE + 4 {
                break Err(BadFrames::Garbled(format!("a frame of {length} bytes")));
            }
            if rest.len() < length {
                break Ok(());
            }
            match event(&rest[..length]) {
                Ok(found) => events.extend(found),
                Err(garbled) => break Err(garbled),
            }
            done += length;
        };
        self.buffered.drain(..done);
        read
    }

    /// Ends the stream.
    pub(super) fn finish(&self) -> Result<(), BadFrames> {
        if self.buffered.is_empty() {
            return Ok(());
        }
        Err(BadFrames::Garbled("the stream ended within a frame".to_owned()))
    }
}

/// The event in a frame; `None` for frames without one.
fn event(frame: &[u8]) -> Result<Option<Event>, BadFrames> {
    #[derive(Deserialize)]
    struct Chunk {
        bytes: String,
    }
    let garbled = |what: &str| BadFrames::Garbled(what.to_owned());
    let message = read_message_from(frame).map_err(|error| BadFrames::Garbled(error.to_string()))?;
    let headers = parse_response_headers(&message).map_err(|error| BadFrames::Garbled(error.to_string()))?;
    let kind = headers.smithy_type.as_str();
    match headers.message_type.as_str() {
        "event" if kind == "chunk" => {
            let chunk: Chunk =
                serde_json::from_slice(message.payload()).map_err(|_| garbled("a chunk without bytes"))?;
            let bytes =
                BASE64.decode(chunk.bytes.as_bytes()).map_err(|_| garbled("a chunk that is not base64"))?;
            let data = String::from_utf8(bytes).map_err(|_| garbled("a chunk that is not UTF-8"))?;
            Ok(Some(Event { name: None, data }))
        }
        "exception" | "error" => Ok(Some(failure(kind, message.payload()))),
        _ => Ok(None),
    }
}

/// Converts a failure inside the stream into an error event of the Anthropic wire.
fn failure(kind: &str, payload: &[u8]) -> Event {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct FailurePayload {
        #[serde(alias = "Message")]
        message: String,
        original_message: String,
    }
    let failure_payload: FailurePayload = serde_json::from_slice(payload).unwrap_or_default();
    let message = if failure_payload.original_message.is_empty() {
        failure_payload.message
    } else {
        failure_payload.original_message
    };
    let kind = match kind {
        "throttlingException" => "rate_limit_error",
        "serviceUnavailableException" => "overloaded_error",
        "modelTimeoutException" => "timeout_error",
        "validationException" => "invalid_request_error",
        "accessDeniedException" => "permission_error",
        "resourceNotFoundException" => "not_found_error",
        _ => "api_error",
    };
    let data = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    Event { name: Some("error".to_owned()), data }
}

#[cfg(test)]
mod tests {
    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue, Message};

    use super::*;

    fn frame(message_type: &str, kind: (&str, &str), payload: &str) -> Vec<u8> {
        let header = |name: &str, value: &str| {
            Header::new(name.to_owned(), HeaderValue::String(value.to_owned().into()))
        };
        let message = Message::new(payload.as_bytes().to_vec())
            .add_header(header(":message-type", message_type))
            .add_header(header(&format!(":{}-type", kind.0), kind.1));
        let mut bytes = Vec::new();
        write_message_to(&message, &mut bytes).expect("a frame");
        bytes
    }

    fn chunk(data: &str) -> Vec<u8> {
        let payload = json!({"bytes": BASE64.encode(data.as_bytes()), "p": "abc"}).to_string();
        frame("event", ("event", "chunk"), &payload)
    }

    #[test]
    fn events_are_independent_of_how_bytes_are_chunked() {
        let stream = [chunk("{\"a\":1}"), frame("event", ("event", "later"), "{}"), chunk("ä")].concat();
        for size in [1, 7, 1000] {
            let (mut reader, mut events) = (FrameReader::default(), Vec::new());
            for bytes in stream.chunks(size) {
                reader.feed(bytes, &mut events).expect("frames");
            }
            assert_eq!(reader.finish(), Ok(()));
            let data: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["{\"a\":1}", "ä"], "{size}");
        }
    }

    #[test]
    fn a_failure_preserves_its_kind_and_message() {
        let mut events = Vec::new();
        let bytes = frame("exception", ("exception", "throttlingException"), r#"{"message":"slow down"}"#);
        FrameReader::default().feed(&bytes, &mut events).expect("a frame");
        assert_eq!(events[0].name.as_deref(), Some("error"));
        assert!(events[0].data.contains("rate_limit_error") && events[0].data.contains("slow down"));
    }

    #[test]
    fn bytes_that_are_not_frames_are_refused() {
        let mut broken = chunk("x");
        let last = broken.len() - 1;
        broken[last] ^= 1;
        let huge = [u32::MAX.to_be_bytes().as_slice(), &[0; 8]].concat();
        let refuse =
            |bytes: &[u8]| FrameReader::default().feed(bytes, &mut Vec::new()).expect_err("no frames");
        assert!(matches!(refuse(&broken), BadFrames::Garbled(_)));
        assert!(matches!(refuse(b"\0\0\0\x03"), BadFrames::Garbled(_)));
        assert!(matches!(refuse(&frame("event", ("event", "chunk"), "{}")), BadFrames::Garbled(_)));
        assert_eq!(refuse(&huge), BadFrames::TooLarge);
        let mut reader = FrameReader::default();
        reader.feed(&chunk("x")[..20], &mut Vec::new()).expect("a beginning");
        assert!(reader.finish().is_err());
    }
}
