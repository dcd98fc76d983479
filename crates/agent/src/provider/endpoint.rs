//! Endpoints of models, and checks of requests to them.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::header_secrets::{self, has_secret_query, is_secret_name};
use super::platform::Platform;
use super::sign_in::SignIn;
use super::{Dialect, Secret, Wire};

/// How to reach a model.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's name in the configuration.
    pub provider: String,
    /// Its wire protocol.
    pub wire: Wire,
    /// Its dialect of the wire.
    pub dialect: Dialect,
    /// The base of its URLs, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key, if one is needed.
    pub key: Option<Secret>,
    /// How the user can set a key, as the end of a sentence: "set `ANTHROPIC_API_KEY`".
    pub key_hint: String,
    /// Additional headers from the configuration. Their values may be secret.
    pub headers: Vec<(String, String)>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// The host of the model: the provider itself, or a cloud with its own addresses and bodies.
    pub platform: Platform,
    /// Authentication beyond a fixed key.
    pub sign_in: SignIn,
}

/// Timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the answer starts. A local model reads the whole conversation first.
    pub first_byte: Duration,
    /// Until the next piece of a started answer.
    pub stall: Duration,
    /// For the whole answer, because keep-alives without content restart the stall timeout.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_mins(10),
            stall: Duration::from_mins(2),
            answer: Duration::from_hours(1),
        }
    }
}

/// Why nothing can be sent to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The URL is invalid.
    #[error("the base_url of {provider} cannot be used: {reason}")]
    Address {
        /// The provider.
        provider: String,
        /// The problem.
        reason: String,
    },
    /// The key cannot be sent.
    #[error("the key for {provider} contains characters that are invalid in a key; {hint}")]
    Key {
        /// The provider.
        provider: String,
        /// How to fix it.
        hint: String,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} of {provider} cannot be sent")]
    Header {
        /// The provider.
        provider: String,
        /// The header.
        name: String,
    },
    /// A secret would be sent unencrypted.
    #[error("a key would go to {host} unencrypted; use https, or remove the key of {provider}")]
    Insecure {
        /// The provider.
        provider: String,
        /// The host.
        host: String,
    },
}

/// The checked URL and headers of a request.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Whether the host is this machine, which needs no proxy.
    pub(super) loopback: bool,
}

impl Endpoint {
    /// Redacts the key, the values of headers, and each secret inside them or in the URL.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let values = self.headers.iter().flat_map(|(name, value)| header_secrets::of(name, value));
        let address = header_secrets::of_address(&self.base_url);
        let signed_in = self.sign_in.secrets();
        let key = self.key.iter().cloned();
        let mut secrets: Vec<Secret> = key.chain(values).chain(address).chain(signed_in).collect();
        Secret::longest_first(&mut secrets);
        secrets.iter().fold(Cow::Borrowed(text), |text, secret| match secret.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => Cow::Owned(redacted),
        })
    }

    /// Checks that a request can be sent without exposing a key.
    pub fn check(&self) -> Result<(), EndpointError> {
        self.target().map(drop)
    }

    pub(super) fn target(&self) -> Result<Target, EndpointError> {
        let url = self.url()?;
        let loopback = is_loopback(&url);
        let secret_header =
            self.sign_in.sends_secrets() || self.headers.iter().any(|(name, _)| is_secret_name(name));
        if url.scheme() == "http"
            && !loopback
            && (self.key.is_some() || secret_header || has_secret_query(&url))
        {
            let host = url.host_str().unwrap_or_default().to_owned();
            return Err(EndpointError::Insecure { provider: self.provider.clone(), host });
        }
        Ok(Target { headers: self.header_map()?, url, loopback })
    }

    fn url(&self) -> Result<Url, EndpointError> {
        let bad = |reason: String| EndpointError::Address { provider: self.provider.clone(), reason };
        let mut url = Url::parse(self.base_url.trim()).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it must begin with https:// or http://".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it must not contain a name or a password".to_owned()));
        }
        if let Some(path) = self.platform.path(self.wire, &self.model) {
            let begin = url.path().trim_end_matches('/').to_owned();
            url.set_path(&format!("{begin}/{path}"));
            return Ok(url);
        }
        let mut path: Vec<String> = match self.wire {
            Wire::Anthropic => vec!["v1".to_owned(), "messages".to_owned()],
            Wire::Chat => vec!["chat".to_owned(), "completions".to_owned()],
            Wire::Responses => vec!["responses".to_owned()],
            Wire::Gemini => vec![
                "models".to_owned(),
                format!("{}:streamGenerateContent", self.model.trim_start_matches("models/")),
            ],
        };
        // Both forms are common.
        if self.wire == Wire::Anthropic && url.path().trim_end_matches('/').ends_with("/v1") {
            path.remove(0);
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if self.wire == Wire::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }

    fn header_map(&self) -> Result<HeaderMap, EndpointError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static(self.platform.accepts()));
        if self.wire == Wire::Anthropic && self.platform.takes_version_header() {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = &self.key {
            let bad = || EndpointError::Key { provider: self.provider.clone(), hint: self.key_hint.clone() };
            if !key.is_usable() {
                return Err(bad());
            }
            let (name, text) = match self.platform.key_header(self.wire) {
                Some(name) => (name, key.reveal().to_owned()),
                None => ("authorization", format!("Bearer {}", key.reveal())),
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        for (name, text) in &self.headers {
            let bad = || EndpointError::Header { provider: self.provider.clone(), name: name.clone() };
            let mut value = HeaderValue::from_str(text).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
        }
        if self.wire == Wire::Anthropic && self.dialect.drop_blocks {
            // In addition to those that the user configured.
            headers
                .append("anthropic-beta", HeaderValue::from_static("thinking-binding-controls-2026-08-01"));
        }
        Ok(headers)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("base_url", &self.redact(&self.base_url))
            .field("model", &self.model)
            .field("key", &self.key)
            .field("headers", &headers)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Whether a URL points to this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => bare == "localhost" || bare.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(wire: Wire, base_url: &str) -> Endpoint {
        Endpoint {
            provider: "acme".to_owned(),
            wire,
            dialect: Dialect::of(wire),
            base_url: base_url.to_owned(),
            model: "m/1 ?".to_owned(),
            key: Some(Secret::new("sk-secret-1")),
            key_hint: "set ACME_KEY".to_owned(),
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            platform: Platform::Direct,
            sign_in: SignIn::Key,
        }
    }

    #[test]
    fn each_wire_has_its_own_address() {
        let check = |wire: Wire, base: &str, expected: &str| {
            let target = endpoint(wire, base).target().expect("a good endpoint");
            assert_eq!(target.url.as_str(), expected);
        };
        check(Wire::Anthropic, "https://a.test", "https://a.test/v1/messages");
        check(Wire::Anthropic, "https://a.test/x/v1/", "https://a.test/x/v1/messages");
        check(Wire::Chat, "https://a.test/v1/", "https://a.test/v1/chat/completions");
        check(
            Wire::Chat,
            "https://a.test/v1?api-version=2",
            "https://a.test/v1/chat/completions?api-version=2",
        );
        check(Wire::Responses, "https://a.test/v1", "https://a.test/v1/responses");
        check(
            Wire::Gemini,
            "https://a.test/v1beta",
            "https://a.test/v1beta/models/m%2F1%20%3F:streamGenerateContent?alt=sse",
        );
    }

    #[test]
    fn a_key_is_never_sent_unencrypted() {
        let check = |base: &str, key: bool, header: Option<&str>, good: bool| {
            let mut endpoint = endpoint(Wire::Chat, base);
            if !key {
                endpoint.key = None;
            }
            endpoint.headers.extend(header.map(|name| (name.to_owned(), "value-of-it".to_owned())));
            assert_eq!(endpoint.check().is_ok(), good, "{base} {key} {header:?}");
        };
        for base in ["http://localhost:1", "http://127.0.0.1:1/v1", "http://[::1]:1", "http://a.localhost"] {
            check(base, true, None, true);
        }
        for base in [
            "http://192.168.1.5/v1",
            "http://localhost.evil.test",
            "http://127.0.0.1.evil.test",
            "http://[::2]",
        ] {
            check(base, true, None, false);
            check(base, false, None, true);
            check(base, false, Some("Authorization"), false);
            check(base, false, Some("X-Trace"), true);
        }
        check("https://a.test", true, Some("Cookie"), true);
        check("http://192.168.1.5/v1?api-key=abc-def", false, None, false);
        for base in ["", "a.test", "ftp://a.test", "https://u:p@a.test", "https://"] {
            check(base, true, None, false);
        }
    }

    #[test]
    fn debug_output_has_no_secret() {
        let mut endpoint = endpoint(Wire::Anthropic, "https://a.test?api-key=in-the-query");
        endpoint.headers.push(("X-Own".to_owned(), "hidden-value".to_owned()));
        endpoint.headers.push(("Authorization".to_owned(), "Bearer other-key-7".to_owned()));
        let target = endpoint.target().expect("a good endpoint");
        let shown = format!("{endpoint:?} {:?}", target.headers);
        assert!(!shown.contains("sk-secret-1") && !shown.contains("hidden-value"), "{shown}");
        assert!(!shown.contains("in-the-query"), "{shown}");
        assert_eq!(endpoint.redact("no key in-the-query"), "no key [key]");
        assert_eq!(endpoint.redact("sk-secret-1 and hidden-value"), "[key] and [key]");
        assert_eq!(endpoint.redact("no such key: other-key-7"), "no such key: [key]");
        endpoint.key = Some(Secret::new("sk\nx"));
        let refused = endpoint.check().expect_err("not a key");
        assert!(refused.to_string().contains("ACME_KEY") && !refused.to_string().contains("sk\n"));
    }
}
