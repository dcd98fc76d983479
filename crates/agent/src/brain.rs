//! Model backends: a remote provider or the built-in offline assistant.

use std::borrow::Cow;

use retake_model::content::ContentId;
use retake_model::projection::{self, Ask, Conversation, ThinkingField, ToolSpec};
use retake_model::settings::Settings;
use serde_json::Value;

use crate::cancel::Cancel;
use crate::provider::config::Resolved;
use crate::provider::known::OFFLINE;
use crate::provider::offline::Heard;
use crate::provider::{Answer, BadEndpoint, CallError, Client, Delta, Endpoint, offline};
use crate::request::Request;

/// The backend that answers requests.
pub enum Brain {
    /// The built-in assistant, without key, network or model.
    Offline,
    /// A remote provider.
    Remote {
        /// Its endpoint.
        endpoint: Box<Endpoint>,
        /// Thinking budget in tokens; `None` disables thinking.
        thinking: Option<u32>,
        /// The HTTP client.
        client: Client,
    },
}

/// Why a provider cannot be called.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotCallable(#[from] BadEndpoint);

impl Brain {
    /// Creates the backend of a resolved provider, with a thinking budget.
    pub fn of(resolved: Resolved, thinking: Option<u32>) -> std::io::Result<Self> {
        Ok(match resolved {
            Resolved::Offline => Self::Offline,
            Resolved::Remote(endpoint) => Self::Remote { endpoint, thinking, client: Client::new()? },
        })
    }

    /// Name of the provider.
    pub fn provider(&self) -> &str {
        match self {
            Self::Offline => OFFLINE,
            Self::Remote { endpoint, .. } => &endpoint.provider,
        }
    }

    /// Name of the model.
    pub fn model(&self) -> &str {
        match self {
            Self::Offline => OFFLINE,
            Self::Remote { endpoint, .. } => &endpoint.model,
        }
    }

    /// Checks the configuration without sending a request.
    pub fn check(&self) -> Result<(), NotCallable> {
        match self {
            Self::Offline => Ok(()),
            Self::Remote { endpoint, .. } => Ok(endpoint.check()?),
        }
    }

    /// Removes secrets from a text.
    pub(crate) fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        match self {
            Self::Offline => Cow::Borrowed(text),
            Self::Remote { endpoint, .. } => endpoint.redact(text),
        }
    }

    /// Builds the body of a request.
    pub(crate) fn body(
        &self,
        conversation: &Conversation,
        system: &str,
        tools: &[ToolSpec],
        settings: &Settings,
        pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
    ) -> Value {
        let Self::Remote { endpoint, thinking, .. } = self else { return Value::Null };
        let usual = Settings::default();
        let ask = Ask {
            wire: endpoint.wire,
            dialect: endpoint.dialect,
            model: &endpoint.model,
            system,
            tools,
            max_tokens: settings.max_tokens,
            // Many models accept only their defaults, so that unchanged values are not sent.
            temperature: set(settings.temperature, usual.temperature),
            top_p: set(settings.top_p, usual.top_p),
            // Models with adaptive thinking must be asked for it, because their thinking between two calls has to be sent
            // back.
            thinking_budget: thinking.or((endpoint.dialect.thinking == ThinkingField::Adaptive).then_some(0)),
        };
        projection::request(conversation, &ask, pictures)
    }

    /// Streams an answer.
    pub(crate) fn answer(
        &self,
        request: &Request,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta),
    ) -> Result<Answer, CallError> {
        match self {
            Self::Offline => {
                let heard = Heard { conversation: &request.conversation, attempt: request.attempt - 1 };
                offline::answer(&heard, cancel, on)
            }
            Self::Remote { endpoint, client, .. } => client.call(endpoint, &request.body, cancel, on),
        }
    }
}

/// A number that differs from its default; the comparison is exact.
fn set(number: f64, usual: f64) -> Option<f64> {
    (number.to_bits() != usual.to_bits()).then_some(number)
}
