//! Model backends: a remote provider or the built-in offline assistant.

use std::borrow::Cow;

use retake_model::content::ContentId;
use retake_model::entry::PDF;
use retake_model::projection::{
    self, Ask, Conversation, Thinking, ThinkingField, Thoughts, ToolSpec, Wire, document_limit,
};
use retake_model::settings::{Effort, Settings};
use serde_json::Value;

use crate::cancel::Cancel;
use crate::provider::catalog::{Limits, limits};
use crate::provider::config::ResolvedProvider;
use crate::provider::known::OFFLINE;
use crate::provider::offline::OfflineRequest;
use crate::provider::{Answer, CallError, Client, Delta, Endpoint, EndpointError, offline};
use crate::request::Request;

/// The most tokens of an answer, thinking aside, where nobody says: enough for a long file, and no more than needed to
/// end an answer that goes on and on.
const USUAL_ANSWER: u32 = 32_000;

/// Who answers.
pub enum ModelBackend {
    /// The built-in assistant, without key, network or model.
    Offline,
    /// A remote provider.
    Remote {
        /// Its endpoint.
        endpoint: Box<Endpoint>,
        /// How much the model thinks where the thread does not say; `None` leaves that to the model.
        thinking: Option<Thinking>,
        /// The model's limits.
        limits: Limits,
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
pub struct BackendError(#[from] EndpointError);

impl ModelBackend {
    /// Whoever a name was found to mean.
    pub fn of(resolved: ResolvedProvider, thinking: Option<Thinking>) -> std::io::Result<Self> {
        Ok(match resolved {
            ResolvedProvider::Offline => Self::Offline,
            ResolvedProvider::Remote(endpoint) => {
                let limits = limits(&endpoint.model);
                Self::Remote { endpoint, thinking, limits, client: Client::new()? }
            }
        })
    }

    /// What the user should know of the model before a turn. `sized` says that the user configured its size.
    pub(crate) fn notices(&self, settings: &Settings, sized: bool) -> Vec<String> {
        let Self::Remote { endpoint, limits, .. } = self else { return Vec::new() };
        let Endpoint { provider, model, .. } = &**endpoint;
        let mut notices = Vec::new();
        if !limits.known && !sized {
            notices.push(format!(
                "{provider}/{model} is not in Retake's table of models: {} tokens of context and {} of output are \
                 assumed; set agent.window and the setting max_tokens to its real limits",
                limits.context, limits.output
            ));
        }
        if settings.effort.is_some() && endpoint.dialect.thinking == ThinkingField::None {
            notices.push(format!(
                "effort is not sent to {provider}/{model}, which is not known to take it; \
                 providers.{provider}.effort = true sends it"
            ));
        }
        notices
    }

    /// How much the model thinks in a thread with these settings.
    fn thinking(&self, settings: &Settings) -> Option<Thinking> {
        let Self::Remote { thinking, .. } = self else { return None };
        settings.effort.map(Thinking::from).or(*thinking)
    }

    /// The most tokens that the model may answer with, its thinking included.
    pub(crate) fn max_tokens(&self, settings: &Settings) -> u32 {
        let Self::Remote { endpoint, limits, .. } = self else { return USUAL_ANSWER };
        let answer = settings.max_tokens.unwrap_or(USUAL_ANSWER.min(limits.output));
        let thinking = match (endpoint.dialect.thinking, self.thinking(settings)) {
            (ThinkingField::None, _) => 0,
            (_, Some(thinking)) => thinking.budget,
            // These think unasked.
            (ThinkingField::Adaptive { .. } | ThinkingField::Effort | ThinkingField::Level, None) => {
                Effort::High.budget()
            }
            (_, None) => 0,
        };
        let most = if limits.known { limits.output } else { u32::MAX };
        answer.saturating_add(thinking).min(most)
    }

    /// The provider's name.
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
    pub fn check(&self) -> Result<(), BackendError> {
        match self {
            Self::Offline => Ok(()),
            Self::Remote { endpoint, .. } => Ok(endpoint.check()?),
        }
    }

    /// Refuses an attachment that the model does not accept.
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

    /// The wire protocol of the model; none for the offline assistant.
    pub(crate) fn wire(&self) -> Option<Wire> {
        match self {
            Self::Offline => None,
            Self::Remote { endpoint, .. } => Some(endpoint.wire),
        }
    }

    /// The text with whatever is secret taken out.
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
        thoughts: Thoughts,
        pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
    ) -> Value {
        let Self::Remote { endpoint, .. } = self else { return Value::Null };
        let ask = Ask {
            wire: endpoint.wire,
            dialect: endpoint.dialect,
            model: &endpoint.model,
            system,
            tools,
            max_tokens: self.max_tokens(settings),
            // Many models take no other than their own: only what someone set is sent.
            temperature: settings.temperature,
            top_p: settings.top_p,
            thinking: self.thinking(settings),
            thoughts,
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
                let heard =
                    OfflineRequest { conversation: &request.conversation, attempt: request.attempt - 1 };
                offline::answer(&heard, cancel, on)
            }
            Self::Remote { endpoint, client, .. } => client.call(endpoint, &request.body, cancel, on),
        }
    }
}
