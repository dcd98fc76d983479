//! Authentication of requests beyond a fixed key in a header.
//!
//! ```text
//!   Key        `endpoint` builds the header
//!   Token      a command or Google's service ─► short-lived token, cached until shortly before it expires
//!   Aws        credentials ─► a signature over the address, the headers and the body (SigV4)
//! ```
//!
//! Secrets are never written to disk or to a log, and are redacted in server messages.

#[cfg(feature = "bedrock")]
pub(super) mod aws;
#[cfg(feature = "vertex")]
pub(super) mod google;
mod token;

use reqwest::header::HeaderValue;

pub use token::TokenSource;

use super::Secret;
use super::endpoint::{Endpoint, Target};
use super::fault::{CallError, Fault};

/// How a request authenticates.
#[derive(Clone, Debug, Default)]
pub enum SignIn {
    /// With the endpoint's key, if it has one.
    #[default]
    Key,
    /// With a token, fetched when needed.
    Token(TokenSource),
    /// With a signature from AWS credentials.
    #[cfg(feature = "bedrock")]
    Aws(Box<aws::AwsSignIn>),
}

impl SignIn {
    /// Whether secrets other than the endpoint's key are sent.
    pub(super) fn sends_secrets(&self) -> bool {
        !matches!(self, Self::Key)
    }

    /// The address of the token service, if there is one.
    pub(super) fn address(&self) -> Option<&reqwest::Url> {
        let Self::Token(source) = self else { return None };
        source.address()
    }

    /// All secrets to redact.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::Key => Vec::new(),
            Self::Token(source) => source.secrets(),
            #[cfg(feature = "bedrock")]
            Self::Aws(aws) => aws.secrets(),
        }
    }

    /// Adds the authentication headers to a request with a final body.
    #[cfg_attr(
        not(feature = "bedrock"),
        expect(unused_variables, reason = "only a signature covers the body")
    )]
    pub(super) async fn authorize(
        &self,
        connector: &reqwest::Client,
        endpoint: &Endpoint,
        target: &mut Target,
        (method, body): (&str, &str),
    ) -> Result<(), CallError> {
        match self {
            Self::Key => Ok(()),
            Self::Token(source) => {
                let token = source.token(connector).await.map_err(|error| error.of(&endpoint.provider))?;
                let text = format!("Bearer {}", token.reveal());
                let mut value = HeaderValue::from_str(&text).map_err(|_| {
                    SignInError::refused("the token contains characters that are invalid in a token")
                        .of(&endpoint.provider)
                })?;
                value.set_sensitive(true);
                target.headers.insert("authorization", value);
                Ok(())
            }
            #[cfg(feature = "bedrock")]
            Self::Aws(aws) => aws
                .sign(method, &target.url, &mut target.headers, body.as_bytes(), std::time::SystemTime::now())
                .map_err(|error| error.of(&endpoint.provider)),
        }
    }

    /// Drops a token that a server refused, so that the next request fetches a new one.
    pub(super) fn forget(&self) {
        if let Self::Token(source) = self {
            source.forget();
        }
    }
}

/// Why authentication failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SignInError {
    fault: Fault,
    message: String,
}

impl SignInError {
    /// The credentials are invalid.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { fault: Fault::Key, message: message.into() }
    }

    /// The token service cannot be reached.
    #[cfg(feature = "vertex")]
    pub(super) fn unreachable(message: impl Into<String>) -> Self {
        Self { fault: Fault::Network, message: message.into() }
    }

    fn of(self, provider: &str) -> CallError {
        CallError::new(self.fault, format!("{provider}: sign-in failed: {}", self.message))
    }
}
