//! Builds model requests: the entries, the system prompt, and the tools.
//!
//! Reads the conversation from its end and only as far as the model window allows, so that long threads start
//! a turn as fast as short ones.

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::projection::{
    Conversation, Thoughts, ToolSpec, Wire, converse, estimate_tokens, message_tokens, picture_tokens,
    request_prefix, usual_picture_tokens,
};
use retake_model::settings::Settings;
use retake_model::take::Take;
use retake_timeline::{Reader, read_picture};
use serde_json::Value;

use crate::calibration::{Calibration, MOST_OFF};
use crate::model_backend::ModelBackend;
use crate::prompt;
use crate::tools;
use crate::turn::{AgentRuntime, TurnError};

/// Entries per read.
const PAGE: u64 = 200;

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
    /// The body for a provider; null for the offline assistant.
    pub(crate) body: Value,
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
        let around: u64 = estimate_tokens(&system)
            + tools
                .iter()
                .map(|tool| estimate_tokens(&tool.description) + estimate_tokens(&tool.schema.to_string()))
                .sum::<u64>();
        let room =
            runtime.window.saturating_sub(around).saturating_sub(u64::from(reserve(runtime, &settings)));
        let (entries, size) = newest(&reader, thread, &take, room, runtime)?;
        let conversation = converse(&entries);
        let wire = runtime.backend.wire();
        let picture = |id| read_picture(&reader, id).ok().flatten();
        let picture_size = |media: &str, id| match wire.zip(picture(id)) {
            Some((wire, bytes)) => picture_tokens(wire, media, &bytes),
            None => usual_picture_tokens(media),
        };
        let message_size = |message| message_tokens(message, &picture_size);
        let estimate = around + conversation.messages.iter().map(message_size).sum::<u64>();
        let calibration = Calibration::of(&entries, runtime.backend.model(), wire);
        let tokens = calibration.map_or(estimate, |calibration| calibration.apply(estimate));
        // Without a count of the provider, the size also covers encrypted thoughts, which have no text.
        let needed = if calibration.is_some() { tokens } else { around.saturating_add(size) };
        if needed > around.saturating_add(room) {
            return Err(too_long(needed, runtime));
        }
        let body = runtime.backend.body(&conversation, &system, &tools, &settings, thoughts, &picture);
        let prefix = wire.filter(|wire| *wire == Wire::Anthropic).and_then(|_| request_prefix(&body));
        let omitted = wire.filter(|_| thoughts == Thoughts::Omitted);
        Ok(Self { conversation, body, tokens, estimate, attempt, trail: Trail { prefix, omitted } })
    }

    /// A request of one message, without tools. No other request follows that could need its thoughts.
    pub(crate) fn single(runtime: &AgentRuntime, settings: &Settings, system: &str, text: &str) -> Self {
        let now = runtime.timeline.now();
        let entry = EntryVersion::from_text("User", text, now);
        let conversation = converse(&[(EntryId::generate(&mut runtime.timeline.fresh()), entry)]);
        let body = runtime.backend.body(&conversation, system, &[], settings, Thoughts::Omitted, &|_| None);
        let tokens = estimate_tokens(system) + estimate_tokens(text);
        Self { conversation, body, tokens, estimate: tokens, attempt: 1, trail: Trail::default() }
    }
}

/// The tool definitions for models.
fn tool_specs() -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tools::schema(tool),
    };
    tools::all().iter().map(spec).collect()
}

/// Tokens reserved for the answer.
fn reserve(runtime: &AgentRuntime, settings: &Settings) -> u32 {
    runtime.backend.max_tokens(settings).min(u32::try_from(runtime.window / 4).unwrap_or(u32::MAX))
}

fn too_long(tokens: u64, runtime: &AgentRuntime) -> TurnError {
    TurnError::TooLong { tokens, window: runtime.window, model: runtime.backend.model().to_owned() }
}

/// All entries and an estimate of their tokens, unless they cannot fit whatever the provider counts.
fn newest(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    room: u64,
    runtime: &AgentRuntime,
) -> Result<(Vec<(EntryId, EntryVersion)>, u64), TurnError> {
    let mut found: Vec<(EntryId, EntryVersion)> = Vec::new();
    let mut tokens = 0;
    let mut end = take.entries.len();
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        for view in reader.entries(thread, take).page(start..end)?.into_iter().rev() {
            tokens += view.entry.size() as u64 / 4;
            found.push((view.id, view.entry));
        }
        if tokens > room.saturating_mul(MOST_OFF) {
            return Err(too_long(tokens, runtime));
        }
        end = start;
    }
    found.reverse();
    Ok((found, tokens))
}
