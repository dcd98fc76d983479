//! Model backends: a remote provider or the built-in offline assistant.

use std::borrow::Cow;

use retake_model::content::ContentId;
use retake_model::entry::PDF;
use retake_model::projection::{
    Ask, Body, Conversation, Remembered, Thinking, ThinkingField, Thoughts, ToolSpec, Wire, document_limit,
};
use retake_model::settings::{Effort, Settings};

use crate::cancel::Cancel;
use crate::provider::catalog::{Limits, limits};
use crate::provider::config::ResolvedProvider;
use crate::provider::known::OFFLINE;
use crate::provider::offline::OfflineRequest;
use crate::provider::{Answer, CallError, Client, Delta, Endpoint, EndpointError, offline};
use crate::request::Request;

/// Default output limit in tokens, without thinking: enough for a long file, and low enough to end a runaway
/// answer.
const USUAL_ANSWER: u32 = 32_000;

/// A model backend.
pub enum ModelBackend {
    /// The built-in assistant, without key, network or model.
    Offline,
    /// A remote provider.
    Remote {
        /// Its endpoint.
        endpoint: Box<Endpoint>,
        /// How much the model thinks unless the thread sets it; `None` uses the model's default.
        thinking: Option<Thinking>,
        /// The model's limits.
        limits: Limits,
        /// The client.
        client: Client,
    },
}

/// What a request has around its conversation.
pub(crate) struct RequestOptions<'a> {
    pub(crate) system: &'a str,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) settings: &'a Settings,
    pub(crate) thoughts: Thoughts,
}

/// Why an attachment cannot be sent to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    /// The model accepts no PDF documents.
    #[error(
        "{provider}/{model} does not accept PDF documents; choose a model of anthropic, openai, gemini, bedrock or \
         vertex with --model, or attach its pages as pictures"
    )]
    NoDocuments {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
    /// The document is too large.
    #[error("the PDF document has {bytes} bytes, but {provider} accepts only {most}; attach a part of it")]
    TooLarge {
        /// The provider.
        provider: String,
        /// Its size in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        most: usize,
    },
}

/// Why the provider cannot be called.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BackendError(#[from] EndpointError);

impl ModelBackend {
    /// The backend for a resolved provider.
    pub fn of(resolved: ResolvedProvider, thinking: Option<Thinking>) -> std::io::Result<Self> {
        Ok(match resolved {
            ResolvedProvider::Offline => Self::Offline,
            ResolvedProvider::Remote(endpoint) => {
                let limits = limits(&endpoint.model);
                Self::Remote { endpoint, thinking, limits, client: Client::new()? }
            }
        })
    }

    /// Notices about the model to show before a turn. `sized`: the user configured its context window.
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
                "effort is not sent to {provider}/{model}, which is not known to accept it; providers.{provider}.effort = true sends it anyway"
            ));
        }
        notices
    }

    /// The thinking setting of a thread.
    fn thinking(&self, settings: &Settings) -> Option<Thinking> {
        let Self::Remote { thinking, .. } = self else { return None };
        settings.effort.map(Thinking::from).or(*thinking)
    }

    /// Maximum tokens of an answer, including its thinking.
    pub(crate) fn max_tokens(&self, settings: &Settings) -> u32 {
        let Self::Remote { endpoint, limits, .. } = self else { return USUAL_ANSWER };
        let answer = settings.max_tokens.unwrap_or(USUAL_ANSWER.min(limits.output));
        let thinking = match (endpoint.dialect.thinking, self.thinking(settings)) {
            (ThinkingField::None, _) => 0,
            (_, Some(thinking)) => thinking.budget,
            // These models think by default.
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
    pub fn check_attachment(&self, media: &str, bytes: usize) -> Result<(), AttachmentError> {
        // The offline assistant reads neither pictures nor documents, and reports that by itself.
        let Self::Remote { endpoint, .. } = self else { return Ok(()) };
        if media != PDF {
            return Ok(());
        }
        let provider = endpoint.provider.clone();
        match document_limit(endpoint.wire).filter(|_| endpoint.dialect.images) {
            None => Err(AttachmentError::NoDocuments { provider, model: endpoint.model.clone() }),
            Some(most) if bytes > most => Err(AttachmentError::TooLarge { provider, bytes, most }),
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

    /// Redacts all secrets in the text.
    pub(crate) fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        match self {
            Self::Offline => Cow::Borrowed(text),
            Self::Remote { endpoint, .. } => endpoint.redact(text),
        }
    }

    /// Builds the body of a request; none for the offline assistant.
    pub(crate) fn body(
        &self,
        remembered: &mut Remembered,
        conversation: &Conversation,
        &RequestOptions { system, tools, settings, thoughts }: &RequestOptions<'_>,
        pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
    ) -> Option<Body> {
        let Self::Remote { endpoint, .. } = self else { return None };
        let ask = Ask {
            wire: endpoint.wire,
            dialect: endpoint.dialect,
            model: &endpoint.model,
            system,
            tools,
            max_tokens: self.max_tokens(settings),
            // Many models accept only their default, so send it only if it is set.
            temperature: settings.temperature,
            top_p: settings.top_p,
            thinking: self.thinking(settings),
            thoughts,
        };
        Some(remembered.request(conversation, &ask, pictures))
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
                let offline_request =
                    OfflineRequest { conversation: &request.conversation, attempt: request.attempt - 1 };
                offline::answer(&offline_request, cancel, on)
            }
            Self::Remote { endpoint, client, .. } => {
                let body = request.body.as_ref().expect("requests of a remote model have a body");
                client.call(endpoint, body, cancel, on)
            }
        }
    }
}
