//! Parses server-sent events.
//!
//! Pure: bytes in, in pieces of any size; events out. Unknown lines are ignored, as the standard requires.
//! Events that were complete before an error are returned before the error.

use super::assembly::ANSWER_BYTES;

/// Maximum bytes of one event: the limit for answers, because some providers repeat the whole answer at the
/// end.
const EVENT_BYTES: usize = ANSWER_BYTES;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its data.
    pub data: String,
}

/// Why bytes are not valid events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventStreamError {
    /// Not UTF-8.
    #[error("the stream is not valid UTF-8")]
    NotText,
    /// Larger than the limit for answers.
    #[error("one event of the stream has more than {} MiB", EVENT_BYTES >> 20)]
    TooLarge,
}

/// Collects events from a stream of bytes.
#[derive(Debug, Default)]
pub struct EventReader {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    begun: bool,
    after_return: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl EventReader {
    /// A parser for a new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes, and appends every completed event to `events`.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), EventStreamError> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.hold(&bytes[..end])?;
            events.extend(self.line_ended()?);
            let ending = bytes[end];
            bytes = &bytes[end + 1..];
            if ending == b'\r' {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.hold(bytes)
    }

    /// Ends the stream. A last event without its empty line still counts.
    pub fn finish(&mut self) -> Result<Option<Event>, EventStreamError> {
        match self.line_ended()? {
            Some(event) => Ok(Some(event)),
            None => Ok(self.event_ended()),
        }
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), EventStreamError> {
        if self.line.len() + self.event.data.len() + bytes.len() > EVENT_BYTES {
            return Err(EventStreamError::TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self) -> Result<Option<Event>, EventStreamError> {
        let line_bytes = std::mem::take(&mut self.line);
        let mut line = line_bytes.as_slice();
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.event_ended());
        }
        let line = std::str::from_utf8(line).map_err(|_| EventStreamError::NotText)?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => self.event.name = Some(value.to_owned()),
            // Not in the standard, but a known local server reports failures inside a stream this way.
            "error" => {
                self.has_data = true;
                self.event.name = Some("error".to_owned());
                self.event.data.push_str(value);
            }
            _ => {}
        }
        Ok(None)
    }

    fn event_ended(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> (Vec<(Option<String>, String)>, Option<EventStreamError>) {
        let mut reader = EventReader::new();
        let mut events = Vec::new();
        let mut wrong = None;
        for piece in pieces {
            if let Err(error) = reader.feed(piece, &mut events) {
                wrong = Some(error);
                break;
            }
        }
        if wrong.is_none() {
            match reader.finish() {
                Ok(last) => events.extend(last),
                Err(error) => wrong = Some(error),
            }
        }
        (events.into_iter().map(|event| (event.name, event.data)).collect(), wrong)
    }

    #[test]
    fn lines_are_parsed_into_events() {
        let check = |text: &str, expected: &[(Option<&str>, &str)]| {
            let (events, wrong) = read(&[text.as_bytes()]);
            let expected: Vec<(Option<String>, String)> =
                expected.iter().map(|(name, data)| (name.map(str::to_owned), (*data).to_owned())).collect();
            assert_eq!(events, expected, "{text:?}");
            assert_eq!(wrong, None);
        };
        check("data: a\n\n", &[(None, "a")]);
        check("data:a\n\ndata:  b\n\n", &[(None, "a"), (None, " b")]);
        check("event: x\ndata: a\ndata: b\n\n", &[(Some("x"), "a\nb")]);
        check("\u{feff}data: a\r\n\r\ndata: b\r\rdata: c", &[(None, "a"), (None, "b"), (None, "c")]);
        check(": a comment\n\nevent: nothing\n\nid: 1\nretry: x\nwhat\n\n", &[]);
        check("event: error\ndata: {}\n\n", &[(Some("error"), "{}")]);
        check("error: {\"code\":500}\n\n", &[(Some("error"), "{\"code\":500}")]);
        check("data:\n\n", &[(None, "")]);
    }

    #[test]
    fn events_before_a_damaged_one_are_returned() {
        let (events, wrong) = read(&[b"data: a\n\ndata: \xff\n\ndata: c\n\n"]);
        assert_eq!(events, [(None, "a".to_owned())]);
        assert_eq!(wrong, Some(EventStreamError::NotText));
    }

    #[test]
    fn the_size_of_an_event_is_limited() {
        let chunk = vec![b'x'; 1 << 20];
        let mut reader = EventReader::new();
        let refused =
            (0..100).any(|_| reader.feed(&chunk, &mut Vec::new()) == Err(EventStreamError::TooLarge));
        assert!(refused);
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        let mut reader = EventReader::new();
        let refused =
            (0..100).any(|_| reader.feed(&line, &mut Vec::new()) == Err(EventStreamError::TooLarge));
        assert!(refused);
    }

    proptest! {
        #[test]
        fn events_are_independent_of_how_the_stream_is_chunked(
            lines in prop::collection::vec("(data|event|id|x)?:? ?[a-zé✓]{0,5}", 0..20),
            endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n"]), 20),
            sizes in prop::collection::vec(1_usize..7, 1..10),
        ) {
            let text: String = lines.iter().zip(&endings).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let whole = read(&[text.as_bytes()]);
            let mut pieces = Vec::new();
            let mut rest = text.as_bytes();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(read(&pieces), whole);
        }
    }
}
