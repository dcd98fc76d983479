//! Reads request bodies within limits of size, memory and time.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::Admission;
use crate::endpoint::RequestBody;
use crate::problem::{Code, Problem};
use crate::upload::Upload;

/// Reads bodies within the limits of an admission.
pub(super) struct BodyReader<'a>(pub(super) &'a Admission);

/// The memory reserved for a body, released on drop.
#[derive(Default)]
#[allow(dead_code, reason = "held for its Drop")]
pub(super) struct BodyPermit {
    /// For its bytes.
    arrived: Option<OwnedSemaphorePermit>,
    /// For its parsed values.
    reading: Option<OwnedSemaphorePermit>,
}

/// Bodies with at most this many values need no permits to be parsed.
const MAX_UNMETERED_VALUES: usize = 1000;

impl BodyReader<'_> {
    /// Checks that there is no body.
    pub(super) async fn nothing(&self, mut body: Body) -> Result<(RequestBody, BodyPermit), Problem> {
        match next(&mut body, self.0.limits.arrival).await? {
            None => Ok((RequestBody::Bytes(Vec::new()), BodyPermit::default())),
            Some(_) => Err(Problem::invalid("this route accepts no body")),
        }
    }

    /// Reads a body into memory.
    pub(super) async fn in_memory(
        &self,
        headers: &HeaderMap,
        mut body: Body,
    ) -> Result<(RequestBody, BodyPermit), Problem> {
        let limit = self.0.limits.body;
        check_length(headers, limit as u64)?;
        let until = Instant::now() + self.0.limits.arrival;
        let (mut bytes, mut weight): (Vec<u8>, Option<OwnedSemaphorePermit>) = (Vec::new(), None);
        while let Some(piece) = next(&mut body, until.saturating_duration_since(Instant::now())).await? {
            if piece.len() > limit.saturating_sub(bytes.len()) {
                return Err(too_large(limit as u64));
            }
            let room = self.0.bodies.clone().try_acquire_many_owned(piece.len() as u32);
            let room =
                room.map_err(|_| Problem::new(Code::Unavailable, "too many request bodies in memory"))?;
            match &mut weight {
                Some(weight) => weight.merge(room),
                None => weight = Some(room),
            }
            bytes.extend_from_slice(&piece);
        }
        let values = values(&bytes);
        if values > self.0.limits.values {
            let most = self.0.limits.values;
            let detail = format!("the body has more than {most} values and names");
            return Err(Problem::new(Code::BodyTooLarge, detail).with("limit", most));
        }
        let reading = self.reserve_values(values).await?;
        Ok((RequestBody::Bytes(bytes), BodyPermit { arrived: weight, reading }))
    }

    /// Reserves permits to parse a large body; waits for other large bodies.
    async fn reserve_values(&self, values: usize) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        if values <= MAX_UNMETERED_VALUES {
            return Ok(None);
        }
        let room = self.0.values.clone().acquire_many_owned(values as u32);
        match timeout(self.0.limits.queue, room).await {
            Ok(Ok(room)) => Ok(Some(room)),
            _ => Err(Problem::new(Code::Unavailable, "too many large request bodies at once")),
        }
    }

    /// Reads a body into an unnamed temporary file.
    pub(super) async fn in_file(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        folder: &Path,
    ) -> Result<(RequestBody, BodyPermit), Problem> {
        let limit = self.0.limits.file;
        check_length(headers, limit)?;
        let failed = |error: std::io::Error| Problem::new(Code::Storage, error);
        // Next to the store, because a temporary folder may be in memory.
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        let mut written = 0;
        while let Some(piece) = next(&mut body, self.0.limits.pause).await? {
            written += piece.len() as u64;
            if written > limit {
                return Err(too_large(limit));
            }
            // Chunks are small and go to the page cache, so that this does not block other requests.
            file.write_all(&piece).map_err(failed)?;
        }
        Ok((RequestBody::File(Upload::new(file)), BodyPermit::default()))
    }
}

/// An upper bound for the number of values and names in JSON, from counting separators. Works for invalid JSON too.
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

/// The next chunk of a body; `None` at its end.
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
                // Ignore trailers.
                Err(_) => {}
            },
            Some(Err(_)) => return Err(Problem::invalid("the body was cut off")),
        }
    }
}

/// Refuses a body by its Content-Length before reading it.
fn check_length(headers: &HeaderMap, limit: u64) -> Result<(), Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit) { Err(too_large(limit)) } else { Ok(()) }
}

fn too_large(limit: u64) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("the body is larger than {limit} bytes")).with("limit", limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_strings_are_not_counted() {
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
