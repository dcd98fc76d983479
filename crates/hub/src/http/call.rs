//! A request as handlers see it, and what they answer.

use axum::body::Bytes;
use retake_model::id::ThreadId;
use retake_sync::bundle::BundleId;
use retake_sync::wire::LINE_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Credentials;
use crate::error::HubError;
use crate::packs::ProjectName;

/// A request.
pub(crate) struct Call {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) range: Option<String>,
    pub(crate) body: Bytes,
}

/// What a handler answers.
pub(crate) enum Reply {
    /// JSON.
    Json(Vec<u8>),
    /// Bytes of a bundle or pack, of which a client may ask for a range.
    Bytes(Vec<u8>),
    /// A page.
    Page(String),
    /// Done.
    Empty,
    /// Nothing has happened yet, as this answer says.
    Nothing(Vec<u8>),
}

impl Reply {
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::Json(encode(value))
    }
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("the types of the protocol have no maps with other keys than texts")
}

impl Call {
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn space(&self) -> &str {
        self.parameter("space")
    }

    /// A name that cannot exist is absent.
    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, HubError> {
        self.parameter(name).parse().map_err(|_| HubError::not_found())
    }

    pub(crate) fn thread(&self) -> Result<(&str, ThreadId), HubError> {
        Ok((self.space(), self.parsed("thread")?))
    }

    pub(crate) fn project(&self) -> Result<ProjectName, HubError> {
        ProjectName::parse(self.parameter("project")).ok_or_else(HubError::not_found)
    }

    pub(crate) fn number(&self) -> Result<u64, HubError> {
        self.parsed::<u64>("number").and_then(|number| {
            if i64::try_from(number).is_ok() { Ok(number) } else { Err(HubError::not_found()) }
        })
    }

    pub(crate) fn bundle(&self) -> Result<BundleId, HubError> {
        self.parsed("bundle")
    }

    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, HubError> {
        serde_urlencoded::from_str(&self.query).map_err(|error| HubError::invalid(&error.to_string()))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, HubError> {
        serde_json::from_slice(&self.body).map_err(|error| HubError::invalid(&error.to_string()))
    }

    /// A line of JSON, and the bytes after it.
    pub(crate) fn line<T: DeserializeOwned>(&self) -> Result<(T, &[u8]), HubError> {
        let end = self.body.iter().take(LINE_BYTES as usize).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| HubError::invalid("the body does not begin with a line of JSON"))?;
        let value = serde_json::from_slice(&self.body[..end]);
        Ok((value.map_err(|error| HubError::invalid(&error.to_string()))?, &self.body[end + 1..]))
    }
}

/// The range of bytes that a client asks for: `bytes=A-B`, `bytes=A-` or `bytes=-N`. Anything else means all of it.
pub(crate) fn range(header: &str, length: usize) -> Option<Result<(usize, usize), ()>> {
    let (from, to) = header.strip_prefix("bytes=")?.split_once('-')?;
    if to.contains(',') {
        return None;
    }
    let (from, end) = match (from.parse::<usize>().ok(), to.parse::<usize>().ok()) {
        (Some(from), Some(to)) if to >= from => (from, to.saturating_add(1).min(length)),
        (Some(from), None) if to.is_empty() => (from, length),
        (None, Some(last)) if from.is_empty() => (length.saturating_sub(last), length),
        _ => return None,
    };
    Some(if from < end { Ok((from, end)) } else { Err(()) })
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_those_of_http() {
        for (header, expected) in [
            ("bytes=0-3", Some(Ok((0, 4)))),
            ("bytes=4-", Some(Ok((4, 10)))),
            ("bytes=-3", Some(Ok((7, 10)))),
            ("bytes=8-99", Some(Ok((8, 10)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=-0", Some(Err(()))),
            ("bytes=5-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=1-2", None),
            ("bytes=18446744073709551615-", Some(Err(()))),
        ] {
            assert_eq!(range(header, 10), expected, "{header}");
        }
    }
}
