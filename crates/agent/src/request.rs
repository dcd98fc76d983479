//! Builds model requests: the entries, the system prompt, and the tools.
//!
//! Reads the conversation from its end and only as far as the model window allows, so that long threads start
//! a turn as fast as short ones. What the last request of the take sent is remembered: only entries that changed since
//! are read, converted and encoded again.

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::projection::{
    Body, Conversation, Remembered, Thoughts, ToolSpec, Wire, converse, estimate_tokens, picture_tokens,
    usual_picture_tokens,
};
use retake_model::settings::Settings;
use retake_timeline::{ReadError, TooLarge, read_picture};

use crate::calibration::{Calibration, MOST_OFF};
use crate::model_backend::{ModelBackend, RequestOptions};
use crate::prompt;
use crate::tools;
use crate::turn::{AgentRuntime, TurnError};

/// The output limit of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputLimit {
    /// From the settings.
    Usual,
    /// Higher, because a tool call was cut off.
    Raised,
}

impl OutputLimit {
    fn apply(self, settings: Settings, backend: &ModelBackend) -> Settings {
        match self {
            Self::Usual => settings,
            Self::Raised => {
                let max_tokens = Some(backend.max_tokens(&settings).saturating_mul(4));
                Settings { max_tokens, ..settings }
            }
        }
    }
}

/// A request to a model.
pub(crate) struct Request {
    /// The conversation.
    pub(crate) conversation: Conversation,
    /// The body for a provider; none for the offline assistant.
    pub(crate) body: Option<Body>,
    /// Estimated tokens.
    pub(crate) tokens: u64,
    /// Estimated tokens from bytes alone.
    pub(crate) estimate: u64,
    /// Number of the attempt, from one.
    pub(crate) attempt: u32,
    /// Data to store with its answer.
    pub(crate) trail: Trail,
}

/// Data about a request that is stored with its answer, so that the answer's thoughts can be sent back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    /// The digest of everything before the answer.
    pub(crate) prefix: Option<String>,
    /// The wire whose thoughts were omitted because the provider refused them.
    pub(crate) omitted: Option<Wire>,
}

impl Request {
    /// Builds the next request of a take.
    pub(crate) fn build(
        runtime: &AgentRuntime,
        thread: ThreadId,
        take: TakeId,
        attempt: u32,
        thoughts: Thoughts,
        limit: OutputLimit,
    ) -> Result<Self, TurnError> {
        let reader = runtime.timeline.read()?;
        let state = reader.state(thread)?;
        let settings = limit.apply(reader.settings(thread).effective_in(&state)?, &runtime.backend);
        let take = state.take(&reader.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
        let system = prompt::system(&settings, &runtime.folder);
        let tools = tool_specs();
        let around = estimate_tokens(&system) + tool_tokens(&tools);
        let room =
            runtime.window.saturating_sub(around).saturating_sub(u64::from(reserve(runtime, &settings)));
        let most_bytes = usize::try_from(room.saturating_mul(MOST_OFF * 4)).unwrap_or(usize::MAX);
        let mut sent = reader
            .conversation(thread, &take, most_bytes)
            .map_err(ReadError::from)?
            .map_err(|TooLarge { bytes }| too_long(bytes as u64 / 4, runtime))?;
        let size = sent.bytes() as u64 / 4;
        let (remembered, entries) = sent.parts();
        let conversation = remembered.converse(entries);
        let wire = runtime.backend.wire();
        let picture = |id| read_picture(&reader, id).ok().flatten();
        let picture_size = |media: &str, id| match wire.zip(picture(id)) {
            Some((wire, bytes)) => picture_tokens(wire, media, &bytes),
            None => usual_picture_tokens(media),
        };
        let estimate = around + remembered.tokens(&conversation, &picture_size);
        let calibration = Calibration::of(entries, runtime.backend.model(), wire);
        let tokens = calibration.map_or(estimate, |calibration| calibration.apply(estimate));
        // Without a count of the provider, the size also covers encrypted thoughts, which have no text.
        let needed = if calibration.is_some() { tokens } else { around.saturating_add(size) };
        if needed > around.saturating_add(room) {
            runtime.timeline.remember(sent);
            return Err(too_long(needed, runtime));
        }
        let around = RequestOptions { system: &system, tools: &tools, settings: &settings, thoughts };
        let body = runtime.backend.body(remembered, &conversation, &around, &picture);
        runtime.timeline.remember(sent);
        let prefix = body.as_ref().and_then(Body::prefix).map(ToOwned::to_owned);
        let omitted = wire.filter(|_| thoughts == Thoughts::Omitted);
        Ok(Self { conversation, body, tokens, estimate, attempt, trail: Trail { prefix, omitted } })
    }

    /// A request of one message, without tools. No other request follows that could need its thoughts.
    pub(crate) fn single(runtime: &AgentRuntime, settings: &Settings, system: &str, text: &str) -> Self {
        let now = runtime.timeline.now();
        let entry = EntryVersion::from_text("User", text, now);
        let conversation = converse(&[(EntryId::generate(&mut runtime.timeline.fresh()), entry)]);
        let around = RequestOptions { system, tools: &[], settings, thoughts: Thoughts::Omitted };
        let body = runtime.backend.body(&mut Remembered::default(), &conversation, &around, &|_| None);
        let tokens = estimate_tokens(system) + estimate_tokens(text);
        Self { conversation, body, tokens, estimate: tokens, attempt: 1, trail: Trail::default() }
    }
}

/// Estimates the tokens of tool definitions.
pub(crate) fn tool_tokens(tools: &[ToolSpec]) -> u64 {
    let tokens =
        |tool: &ToolSpec| estimate_tokens(&tool.description) + estimate_tokens(&tool.schema.to_string());
    tools.iter().map(tokens).sum()
}

/// The tool definitions for models.
pub(crate) fn tool_specs() -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tools::schema(tool),
    };
    tools::all().iter().map(spec).collect()
}

/// Tokens reserved for the answer.
pub(crate) fn reserve(runtime: &AgentRuntime, settings: &Settings) -> u32 {
    runtime.backend.max_tokens(settings).min(u32::try_from(runtime.window / 4).unwrap_or(u32::MAX))
}

fn too_long(tokens: u64, runtime: &AgentRuntime) -> TurnError {
    TurnError::TooLong { tokens, window: runtime.window, model: runtime.backend.model().to_owned() }
}
