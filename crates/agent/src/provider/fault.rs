//! Errors of model calls, and whether to retry them.

use std::time::Duration;

use retake_model::agent::FaultOrigin;

use super::Answer;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The user cancelled it.
    Interrupted,
    /// The server could not be reached, or the connection broke.
    Network,
    /// Nothing arrived for too long.
    Stalled,
    /// The answer took longer than the time limit.
    Overlong,
    /// The server is overloaded, or the rate limit is reached.
    Busy,
    /// The server failed.
    Server,
    /// The key is missing, invalid, or lacks permission.
    Key,
    /// The account has no credit.
    Billing,
    /// The model or address does not exist.
    NotFound,
    /// The conversation exceeds the context window.
    TooLong,
    /// The server refused the request.
    Refused,
    /// The response does not follow the protocol.
    Protocol,
    /// The stream ended before the answer was complete.
    Cut,
    /// The answer exceeds the size limit.
    TooLarge,
    /// The key would have been sent unencrypted.
    Insecure,
}

impl Fault {
    /// Whether a retry may succeed.
    ///
    /// This includes garbled streams: usually something between here and the server broke them.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Network | Self::Stalled | Self::Busy | Self::Server | Self::Protocol | Self::Cut => true,
            Self::Interrupted
            | Self::Key
            | Self::Billing
            | Self::NotFound
            | Self::TooLong
            | Self::Overlong
            | Self::Refused
            | Self::TooLarge
            | Self::Insecure => false,
        }
    }
}

impl Fault {
    /// The origin for the agent's state machine.
    pub fn origin(self) -> FaultOrigin {
        match self {
            Self::Network | Self::Stalled | Self::Cut => FaultOrigin::Network,
            Self::Key | Self::NotFound | Self::Insecure => FaultOrigin::Setup,
            Self::Interrupted
            | Self::Busy
            | Self::Server
            | Self::Billing
            | Self::TooLong
            | Self::Overlong
            | Self::Refused
            | Self::Protocol
            | Self::TooLarge => FaultOrigin::Model,
        }
    }
}

/// A failed call, with everything received before the failure.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Why it failed.
    pub fault: Fault,
    /// The HTTP status, or the equivalent of a failure reported inside a stream.
    pub status: Option<u16>,
    /// Whether to retry.
    pub retryable: bool,
    /// The delay before a retry that the server asks for.
    pub retry_after: Option<Duration>,
    /// The problem and how to fix it, without the key.
    pub message: String,
    /// The partial answer.
    pub partial: Box<Answer>,
}

impl CallError {
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self {
            fault,
            status: None,
            retryable: fault.is_retryable(),
            retry_after: None,
            message: message.into(),
            partial: Box::default(),
        }
    }

    /// Whether the provider refuses thoughts that are bound to another request, account or model. The request
    /// can be retried without them.
    pub(crate) fn refuses_thoughts(&self) -> bool {
        let text = self.message.to_lowercase();
        let about = |words: &[&str]| words.iter().all(|word| text.contains(word));
        self.status == Some(400)
            && self.partial.blocks.is_empty()
            && (about(&["bound to a different conversation"])
                || about(&["signature", "thinking"])
                || about(&["thought", "signature"])
                || about(&["encrypted content"])
                || about(&["encrypted_content"]))
    }

    pub(crate) fn keeping(self, partial: Answer) -> Self {
        Self { partial: Box::new(partial), ..self }
    }
}

impl From<&CallError> for retake_model::agent::Fault {
    fn from(error: &CallError) -> Self {
        Self {
            origin: error.fault.origin(),
            message: error.message.clone(),
            retryable: error.retryable,
            retry_after: error.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// Why decoding failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// The response does not follow the protocol.
    Protocol(String),
    /// The response exceeds the size limit.
    TooLarge,
    /// The server reported a failure inside the stream.
    Server {
        /// The equivalent HTTP status.
        status: u16,
        /// The provider's error type.
        kind: String,
        /// The provider's message.
        message: String,
    },
}

impl DecodeError {
    pub(super) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Protocol(format!("an event is not as it should be: {error}"))
    }
}
