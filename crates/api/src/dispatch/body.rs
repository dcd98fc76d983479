//! Bodies as they arrive: never more than there is room for, never longer than there is time for.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::endpoint::Content;
use crate::limits::Limits;
use crate::problem::{Code, Problem};
use crate::upload::Upload;

/// Reads a body within limits.
pub(super) struct Arriving<'a> {
    pub(super) limits: &'a Limits,
    /// A permit for every byte that is in memory.
    pub(super) bodies: &'a Arc<Semaphore>,
    /// A permit for every value that is read, of those that are many.
    pub(super) reading: &'a Arc<Semaphore>,
}

/// The room that a body takes in memory, until it is dropped.
#[derive(Default)]
#[allow(dead_code, reason = "it is held, and given back by being dropped")]
pub(super) struct Weight {
    /// As it arrived.
    arrived: Option<OwnedSemaphorePermit>,
    /// As what it is read into.
    reading: Option<OwnedSemaphorePermit>,
}

/// Bodies with so few values need no room to be read: they are read at once, whoever waits.
const FEW_VALUES: usize = 1000;

impl Arriving<'_> {
    /// No body at all.
    pub(super) async fn nothing(&self, mut body: Body) -> Result<(Content, Weight), Problem> {
        match next(&mut body, self.limits.arrival).await? {
            None => Ok((Content::Bytes(Vec::new()), Weight::default())),
            Some(_) => Err(Problem::invalid("this route takes no body")),
        }
    }

    /// A body in memory.
    pub(super) async fn in_memory(
        &self,
        headers: &HeaderMap,
        mut body: Body,
    ) -> Result<(Content, Weight), Problem> {
        let limit = self.limits.body;
        check_length(headers, limit as u64)?;
        let until = Instant::now() + self.limits.arrival;
        let (mut bytes, mut weight): (Vec<u8>, Option<OwnedSemaphorePermit>) = (Vec::new(), None);
        while let Some(piece) = next(&mut body, until.saturating_duration_since(Instant::now())).await? {
            if piece.len() > limit.saturating_sub(bytes.len()) {
                return Err(too_large(limit as u64));
            }
            let room = self.bodies.clone().try_acquire_many_owned(piece.len() as u32);
            let room = room.map_err(|_| {
                Problem::new(Code::Unavailable, "the server has too many bodies in memory at once")
            })?;
            match &mut weight {
                Some(weight) => weight.merge(room),
                None => weight = Some(room),
            }
            bytes.extend_from_slice(&piece);
        }
        let values = values(&bytes);
        if values > self.limits.values {
            let most = self.limits.values;
            let detail = format!("a body here has at most {most} values and names");
            return Err(Problem::new(Code::BodyTooLarge, detail).with("limit", most));
        }
        let reading = self.room_to_read(values).await?;
        Ok((Content::Bytes(bytes), Weight { arrived: weight, reading }))
    }

    /// The room that is needed to read so many values; whoever needs much waits for others who do.
    async fn room_to_read(&self, values: usize) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        if values <= FEW_VALUES {
            return Ok(None);
        }
        let room = self.reading.clone().acquire_many_owned(values as u32);
        match timeout(self.limits.queue, room).await {
            Ok(Ok(room)) => Ok(Some(room)),
            _ => Err(Problem::new(Code::Unavailable, "the server has too many large bodies to read")),
        }
    }

    /// A body in a file that is nobody else's and has no name.
    pub(super) async fn in_file(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        folder: &Path,
    ) -> Result<(Content, Weight), Problem> {
        let limit = self.limits.file;
        check_length(headers, limit)?;
        let failed = |error: std::io::Error| Problem::new(Code::Storage, error);
        // Beside the store: a temporary folder may be memory.
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        let mut written = 0;
        while let Some(piece) = next(&mut body, self.limits.pause).await? {
            written += piece.len() as u64;
            if written > limit {
                return Err(too_large(limit));
            }
            // A piece is small, and goes to the system's memory: that does not hold the others up.
            file.write_all(&piece).map_err(failed)?;
        }
        Ok((Content::File(Upload::new(file)), Weight::default()))
    }
}

/// How many values and names there are in JSON, or more: all that is counted are the signs between them. A text that is no
/// JSON has some number too.
fn values(json: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in json {
        match (inside, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => inside = !inside,
            (false, b',' | b':' | b'[' | b'{') => count += 1,
            _ => {}
        }
    }
    count
}

/// The next piece of a body; `None` at its end.
async fn next(body: &mut Body, within: Duration) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = timeout(within, body.frame())
            .await
            .map_err(|_| Problem::new(Code::RequestTimeout, "the body did not arrive in time"))?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Ok(Some(piece)),
                // Trailers say nothing that is asked for.
                Err(_) => {}
            },
            Some(Err(_)) => return Err(Problem::invalid("the body broke off")),
        }
    }
}

/// A body that says that it is too large need not be read.
fn check_length(headers: &HeaderMap, limit: u64) -> Result<(), Problem> {
    let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > limit) { Err(too_large(limit)) } else { Ok(()) }
}

fn too_large(limit: u64) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("a body here has at most {limit} bytes")).with("limit", limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        let check = |json: &str, expected: usize| assert_eq!(values(json.as_bytes()), expected, "{json}");
        check("", 0);
        check("17", 0);
        check("{}", 1);
        check("[1, 2, 3]", 3);
        check(r#"{"a": [{}, {"b": null}]}"#, 7);
        check(r#""[,{:""#, 0);
        check(r#"["\"[[[", "\\"]"#, 2);
        check(r#"{"a\":[": 1}"#, 2);
    }
}
