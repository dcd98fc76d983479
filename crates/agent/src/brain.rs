//! Who answers: a provider over the network, or the assistant that needs none.

use std::borrow::Cow;

use retake_model::content::ContentId;
use retake_model::entry::PDF;
use retake_model::projection::{self, Ask, Conversation, ThinkingField, ToolSpec, document_limit};
use retake_model::settings::Settings;
use serde_json::Value;

use crate::cancel::Cancel;
use crate::provider::config::Resolved;
use crate::provider::known::OFFLINE;
use crate::provider::offline::Heard;
use crate::provider::{Answer, BadEndpoint, CallError, Client, Delta, Endpoint, offline};
use crate::request::Request;

/// Who answers.
pub enum Brain {
    /// The assistant that is built in: no key, no network, and no model.
    Offline,
    /// A provider.
    Remote {
        /// How it is reached.
        endpoint: Box<Endpoint>,
        /// How many tokens the model may think for; `None` asks for no thinking.
        thinking: Option<u32>,
        /// The client.
        client: Client,
    },
}

/// Why something cannot be attached to a message for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unattachable {
    /// It takes no PDF documents.
    #[error(
        "{provider}/{model} takes no PDF documents; choose a model of anthropic, openai, gemini, bedrock or \
         vertex with --model, or attach its pages as pictures"
    )]
    NoDocuments {
        /// Who serves the model.
        provider: String,
        /// The model.
        model: String,
    },
    /// It is too large.
    #[error("the PDF document has {bytes} bytes, and {provider} takes {most}; attach a part of it")]
    TooLarge {
        /// Who serves the model.
        provider: String,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
}

/// Why a provider cannot be called at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotCallable(#[from] BadEndpoint);

impl Brain {
    /// Whoever a name was found to mean. A model may think for that many tokens.
    pub fn of(resolved: Resolved, thinking: Option<u32>) -> std::io::Result<Self> {
        Ok(match resolved {
            Resolved::Offline => Self::Offline,
            Resolved::Remote(endpoint) => Self::Remote { endpoint, thinking, client: Client::new()? },
        })
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        match self {
            Self::Offline => OFFLINE,
            Self::Remote { endpoint, .. } => &endpoint.provider,
        }
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        match self {
            Self::Offline => OFFLINE,
            Self::Remote { endpoint, .. } => &endpoint.model,
        }
    }

    /// Whether it can be called at all, as far as that can be said without calling.
    pub fn check(&self) -> Result<(), NotCallable> {
        match self {
            Self::Offline => Ok(()),
            Self::Remote { endpoint, .. } => Ok(endpoint.check()?),
        }
    }

    /// Refuses what is attached to a message if the model cannot be sent it.
    pub fn check_attachment(&self, media: &str, bytes: usize) -> Result<(), Unattachable> {
        // The offline assistant reads neither pictures nor documents, and reports that by itself.
        let Self::Remote { endpoint, .. } = self else { return Ok(()) };
        if media != PDF {
            return Ok(());
        }
        let provider = endpoint.provider.clone();
        match document_limit(endpoint.wire).filter(|_| endpoint.dialect.images) {
            None => Err(Unattachable::NoDocuments { provider, model: endpoint.model.clone() }),
            Some(most) if bytes > most => Err(Unattachable::TooLarge { provider, bytes, most }),
            Some(_) => Ok(()),
        }
    }

    /// The text with whatever is secret taken out.
    pub(crate) fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        match self {
            Self::Offline => Cow::Borrowed(text),
            Self::Remote { endpoint, .. } => endpoint.redact(text),
        }
    }

    /// The body of a request.
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
            // Many models take no other than their own: only what someone set is sent.
            temperature: set(settings.temperature, usual.temperature),
            top_p: set(settings.top_p, usual.top_p),
            // Models that decide by themselves how much to think must be asked to: what they thought between two
            // calls has to go back to them.
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

/// A number that someone set to something else than usual. The usual one is exactly what it is by default.
fn set(number: f64, usual: f64) -> Option<f64> {
    (number.to_bits() != usual.to_bits()).then_some(number)
}
