//! Clouds that host other makers' models: the same wires at other addresses, with small changes to the body.
//!
//! ```text
//!   azure     …/openai/v1/responses                               api-key, or a token of Entra ID
//!   bedrock   …/model/MODEL/invoke-with-response-stream           SigV4, or an API key of Bedrock
//!   vertex    …/publishers/google/models/MODEL:streamGenerateContent?alt=sse    a token of Google
//!             …/publishers/anthropic/models/MODEL:streamRawPredict
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use reqwest::header::HeaderMap;
use retake_model::projection::Body;
use serde_json::Value;

use super::Wire;

/// The host of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// The provider itself, or a compatible server.
    #[default]
    Direct,
    /// Azure `OpenAI` and Microsoft Foundry.
    Azure,
    /// Amazon Bedrock, for Claude.
    Bedrock,
    /// Vertex AI, for Gemini and Claude.
    Vertex,
}

impl Platform {
    /// Finds a platform by its name in the configuration.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "azure" => Self::Azure,
            "bedrock" => Self::Bedrock,
            "vertex" => Self::Vertex,
            _ => return None,
        })
    }

    /// The encoded path below the base URL, if it differs from the wire's default.
    pub(super) fn path(self, wire: Wire, model: &str) -> Option<String> {
        match (self, wire) {
            (Self::Bedrock, _) => Some(format!("model/{}/invoke-with-response-stream", segment(model))),
            (Self::Vertex, Wire::Anthropic) => {
                // Google's examples do not encode the `@` before a version.
                Some(format!("models/{}:streamRawPredict", segment(model).replace("%40", "@")))
            }
            _ => None,
        }
    }

    /// The header for the plain key; `None` for `Authorization: Bearer`.
    pub(super) fn key_header(self, wire: Wire) -> Option<&'static str> {
        match (self, wire) {
            (Self::Bedrock | Self::Vertex, _) | (Self::Direct, Wire::Chat | Wire::Responses) => None,
            (_, Wire::Anthropic) => Some("x-api-key"),
            (Self::Azure, _) => Some("api-key"),
            (Self::Direct, Wire::Gemini) => Some("x-goog-api-key"),
        }
    }

    /// Whether the version of the Anthropic wire is a header; otherwise it is in the body.
    pub(super) fn takes_version_header(self) -> bool {
        matches!(self, Self::Direct | Self::Azure)
    }

    /// The body in the platform's format. Platforms without beta headers take betas in the body.
    pub(super) fn body(self, wire: Wire, body: &Body, headers: &mut HeaderMap) -> String {
        let version = match (self, wire) {
            (Self::Bedrock, _) => "bedrock-2023-05-31",
            (Self::Vertex, Wire::Anthropic) => "vertex-2023-10-16",
            _ => return body.to_json(),
        };
        let mut body = body.clone();
        // The model is in the URL.
        body.remove("model");
        body.set("anthropic_version", version.into());
        if self == Self::Bedrock {
            // The URL also selects streaming, and unknown fields are refused.
            body.remove("stream");
            let betas: Vec<Value> = headers
                .get_all("anthropic-beta")
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .map(|beta| beta.trim().into())
                .collect();
            if !betas.is_empty() {
                body.set("anthropic_beta", betas.into());
            }
            headers.remove("anthropic-beta");
        }
        body.to_json()
    }

    /// The value of the `Accept` header.
    pub(super) fn accepts(self) -> &'static str {
        match self {
            Self::Bedrock => "application/vnd.amazon.eventstream",
            _ => "text/event-stream",
        }
    }
}

/// The maker's name of a model, without a cloud's additions: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`
/// and `claude-sonnet-4-5@20250929` become `claude-sonnet-4-5-20250929`.
pub fn plain_model(model: &str) -> Cow<'_, str> {
    // An ARN ends with a slash and the name.
    let name = if model.starts_with("arn:") { model.rsplit('/').next().unwrap_or(model) } else { model };
    let Some((_, claude)) = name.split_once("anthropic.") else {
        return match name.split_once('@') {
            Some((name, "default")) => Cow::Borrowed(name),
            Some((name, date)) => Cow::Owned(format!("{name}-{date}")),
            None => Cow::Borrowed(name),
        };
    };
    let end = claude.rfind("-v").filter(|&end| {
        let version = &claude[end + 2..];
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    Cow::Borrowed(&claude[..end.unwrap_or(claude.len())])
}

/// Encodes a path segment: everything but letters, digits and `-._~`, as AWS signs it.
pub(super) fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cloud_model_name_maps_to_the_name_of_its_maker() {
        for (model, expected) in [
            ("claude-sonnet-4-5", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
            ("claude-opus-4-6@default", "claude-opus-4-6"),
            ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929"),
            ("global.anthropic.claude-sonnet-4-6", "claude-sonnet-4-6"),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
                "claude-haiku-4-5-20251001",
            ),
            ("gemini-2.5-flash", "gemini-2.5-flash"),
        ] {
            assert_eq!(plain_model(model), expected);
        }
    }

    #[test]
    fn a_request_body_is_adapted_to_its_platform() {
        let body = json!({"model": "m", "max_tokens": 9, "stream": true});
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-beta", "one, two".parse().expect("a value"));
        let sent = |platform: Platform, headers: &mut HeaderMap| -> Value {
            serde_json::from_str(&platform.body(Wire::Anthropic, &body.clone().into(), headers))
                .expect("JSON")
        };
        assert_eq!(sent(Platform::Direct, &mut headers), body);
        assert_eq!(
            sent(Platform::Vertex, &mut headers),
            json!({"max_tokens": 9, "stream": true, "anthropic_version": "vertex-2023-10-16"})
        );
        assert!(headers.contains_key("anthropic-beta"));
        assert_eq!(
            sent(Platform::Bedrock, &mut headers),
            json!({
                "max_tokens": 9,
                "anthropic_version": "bedrock-2023-05-31",
                "anthropic_beta": ["one", "two"],
            })
        );
        assert!(headers.is_empty());
    }
}
