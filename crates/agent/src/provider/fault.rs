//! What can go wrong with a call, and whether it is worth trying again.

use std::time::Duration;

use retake_model::agent::FaultOrigin;

use super::Answer;

/// Where a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The user stopped it.
    Interrupted,
    /// The server could not be reached, or the connection broke.
    Network,
    /// Nothing came for too long.
    Stalled,
    /// The answer went on for longer than an answer may take.
    Overlong,
    /// The server has too much to do, or we ask too often.
    Busy,
    /// The server failed.
    Server,
    /// The key is missing, wrong, or may not do this.
    Key,
    /// There is nothing left to pay with.
    Billing,
    /// There is no such model or address.
    NotFound,
    /// The conversation does not fit into the model.
    TooLong,
    /// The server does not accept the request.
    Refused,
    /// What came is not what this wire speaks.
    Protocol,
    /// The stream ended before the answer did.
    Cut,
    /// The answer is larger than any may be.
    TooLarge,
    /// The key would have gone over the network in the clear.
    Insecure,
}

impl Fault {
    /// Whether the same call may well succeed a little later.
    ///
    /// A stream that makes no sense counts: as a rule something between here and the server broke it.
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
    /// Where the agent's state machine places it.
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

/// A call that failed, with everything that was received before.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Where it failed.
    pub fault: Fault,
    /// The status that the server answered with, or said that it would have.
    pub status: Option<u16>,
    /// Whether to try again.
    pub retryable: bool,
    /// How long the server asks to wait before.
    pub retry_after: Option<Duration>,
    /// What happened and what to do, without the key.
    pub message: String,
    /// What was received.
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

    /// Whether a provider refuses thoughts that are bound to another request, account or model. Such a request can be
    /// sent again without them.
    pub(crate) fn refuses_thoughts(&self) -> bool {
        let said = self.message.to_lowercase();
        let about = |words: &[&str]| words.iter().all(|word| said.contains(word));
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

/// Why a decoder cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// What came is not what this wire speaks.
    Protocol(String),
    /// More came than may be held.
    TooLarge,
    /// The server says, in the middle, that it failed.
    Server {
        /// The status that this would have been.
        status: u16,
        /// A word of the provider's for it.
        kind: String,
        /// What it says.
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
