//! What a model is asked: the newest entries of a take that fit, with the system prompt and the tools.
//!
//! Only so much of a conversation is read as a model can be given, from its end, so a long thread begins a turn as
//! fast as a short one.

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::projection::{Conversation, ToolSpec, converse, estimate_tokens, message_tokens};
use retake_model::settings::Settings;
use retake_model::take::Take;
use retake_timeline::Looking;
use serde_json::Value;

use crate::calibration::Calibration;
use crate::prompt;
use crate::tools;
use crate::turn::{TurnError, Workshop};

/// Entries that are read at a time.
const PAGE: u64 = 200;

/// How long an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputLimit {
    /// As the settings say.
    Usual,
    /// More, because a tool call was cut.
    Raised,
}

impl OutputLimit {
    fn apply(self, settings: Settings) -> Settings {
        match self {
            Self::Usual => settings,
            Self::Raised => Settings { max_tokens: settings.max_tokens.saturating_mul(4), ..settings },
        }
    }
}

/// A request to a model.
pub(crate) struct Request {
    /// What was said.
    pub(crate) conversation: Conversation,
    /// The body, for a provider; null for the assistant that needs none.
    pub(crate) body: Value,
    /// About how many tokens it has, by what the provider counted before.
    pub(crate) tokens: u64,
    /// About how many tokens it has, by its bytes alone.
    pub(crate) estimate: u64,
    /// Which attempt at this request it is, from one.
    pub(crate) attempt: u32,
}

impl Request {
    /// What the model of a take is asked next.
    pub(crate) fn build(
        shop: &Workshop,
        thread: ThreadId,
        take: TakeId,
        attempt: u32,
        limit: OutputLimit,
    ) -> Result<Self, TurnError> {
        let looking = shop.timeline.look()?;
        let state = looking.state(thread)?;
        let settings = limit.apply(looking.effective_settings_in(thread, &state)?);
        let take = state.take(&looking.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
        let system = prompt::system(&settings, &shop.folder);
        let tools = tool_specs();
        let around: u64 = estimate_tokens(&system)
            + tools
                .iter()
                .map(|tool| estimate_tokens(&tool.description) + estimate_tokens(&tool.schema.to_string()))
                .sum::<u64>();
        let room =
            shop.window.saturating_sub(around).saturating_sub(u64::from(reserve(&settings, shop.window)));
        let entries = newest(&looking, thread, &take, room, shop)?;
        let conversation = converse(&entries);
        let estimate = around + conversation.messages.iter().map(message_tokens).sum::<u64>();
        let calibration = Calibration::of(&entries, shop.brain.model());
        let tokens = calibration.map_or(estimate, |calibration| calibration.apply(estimate));
        let body = shop
            .brain
            .body(&conversation, &system, &tools, &settings, &|id| looking.picture(id).ok().flatten());
        Ok(Self { conversation, body, tokens, estimate, attempt })
    }

    /// A request of one message, without tools.
    pub(crate) fn single(shop: &Workshop, settings: &Settings, system: &str, text: &str) -> Self {
        let now = shop.timeline.now();
        let entry = EntryVersion::from_text("User", text, now);
        let conversation = converse(&[(EntryId::fresh(&mut shop.timeline.fresh()), entry)]);
        let body = shop.brain.body(&conversation, system, &[], settings, &|_| None);
        let tokens = estimate_tokens(system) + estimate_tokens(text);
        Self { conversation, body, tokens, estimate: tokens, attempt: 1 }
    }
}

/// The tools, as a model is told of them.
fn tool_specs() -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tools::schema(tool),
    };
    tools::all().iter().map(spec).collect()
}

/// What is left free for the answer.
fn reserve(settings: &Settings, window: u64) -> u32 {
    settings.max_tokens.min(u32::try_from(window / 4).unwrap_or(u32::MAX))
}

/// All entries, if the model can be given them.
fn newest(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: &Take,
    room: u64,
    shop: &Workshop,
) -> Result<Vec<(EntryId, EntryVersion)>, TurnError> {
    let mut found: Vec<(EntryId, EntryVersion)> = Vec::new();
    let mut tokens = 0;
    let mut end = take.entries.len();
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        for view in looking.page(thread, take, start..end)?.into_iter().rev() {
            tokens += view.entry.size() as u64 / 4;
            found.push((view.id, view.entry));
        }
        if tokens > room {
            let model = shop.brain.model().to_owned();
            return Err(TurnError::TooLong { tokens, window: shop.window, model });
        }
        end = start;
    }
    found.reverse();
    Ok(found)
}
