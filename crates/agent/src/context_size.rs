//! What the next request of a take will hold, by size.
//!
//! ```text
//!   system prompt │ tools │ entry 1 │ entry 2 │ … │ context files that changed │ ← reserved for the answer → │
//!   ├──────────────────────────── tokens ─────────────────────────┤            the model's window ─────────┤
//! ```
//!
//! The total is that of the request itself (`request.rs`), calibrated with the provider's last count; the parts are
//! estimates from bytes that are scaled to it.

use std::collections::{BTreeSet, HashMap};

use retake_model::entry::{Block, ContextPart, EntryVersion};
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::projection::{
    Part, converse, estimate_tokens, message_tokens, picture_tokens, usual_picture_tokens,
};
use retake_timeline::{EntryView, read_picture};
use serde::Serialize;

use crate::calibration::Calibration;
use crate::context::{gather, last_context};
use crate::prompt;
use crate::request::{reserve, tool_specs, tool_tokens};
use crate::turn::{AgentRuntime, TurnError};

/// The content of the next request, by size.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ContextSize"))]
pub struct ContextSize {
    /// The model.
    pub model: String,
    /// Its context window.
    pub window: u64,
    /// Tokens reserved for its answer.
    pub reserved: u64,
    /// Tokens of the whole request.
    pub tokens: u64,
    /// Whether the provider has counted an earlier request of this conversation; otherwise everything is estimated from
    /// bytes.
    pub calibrated: bool,
    /// Tokens of the system prompt.
    pub system: u64,
    /// Tokens of the definitions of tools.
    pub tools: u64,
    /// Context files that the next prompt will send, because they changed.
    pub files: Vec<ContextFileSize>,
    /// The entries, in order.
    pub entries: Vec<ContextEntry>,
}

/// A context file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextFileSize {
    /// Its path.
    pub path: String,
    /// Its tokens.
    pub tokens: u64,
}

/// An entry in the context.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextEntry {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub id: EntryId,
    /// Its role.
    pub role: String,
    /// Its beginning, on one line.
    pub preview: String,
    /// Its tokens.
    pub tokens: u64,
    /// How many of them are output of tools.
    pub output: u64,
    /// How many of them are pictures and documents.
    pub images: u64,
    /// Parts that are not in the context.
    pub not_in_context: BTreeSet<ContextPart>,
    /// The tokens that they would add.
    pub removed: u64,
}

/// Tokens by what they are of, estimated from bytes.
#[derive(Clone, Copy, Default)]
struct Estimate {
    all: u64,
    output: u64,
    images: u64,
}

impl AgentRuntime {
    /// What the next request of a take will hold.
    pub fn context_size(&self, thread: ThreadId, take: TakeId) -> Result<ContextSize, TurnError> {
        let reader = self.timeline.read()?;
        let state = reader.state(thread)?;
        let settings = reader.settings(thread).effective_in(&state)?;
        let take = state.take(&reader.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
        let views = reader.entries(thread, &take).page(0..take.entries.len())?;
        let wire = self.backend.wire();
        let picture_size = |media: &str, id| {
            let bytes = || read_picture(&reader, id).ok().flatten();
            match wire.and_then(|wire| Some((wire, bytes()?))) {
                Some((wire, bytes)) => picture_tokens(wire, media, &bytes),
                None => usual_picture_tokens(media),
            }
        };
        let entries: Vec<(EntryId, EntryVersion)> =
            views.iter().map(|view| (view.id, view.entry.clone())).collect();
        let conversation = converse(&entries);
        let system = estimate_tokens(&prompt::system(&settings, &self.folder));
        let tools = tool_tokens(&tool_specs());
        let messages = conversation.messages.iter().map(|message| message_tokens(message, &picture_size));
        let estimate = system + tools + messages.sum::<u64>();
        let calibration = Calibration::of(&entries, self.backend.model(), wire);
        let tokens = calibration.map_or(estimate, |calibration| calibration.apply(estimate));
        let scaled = |part: u64| {
            let scaled = u128::from(part) * u128::from(tokens) / u128::from(estimate.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        // Thoughts are sent only where their provider accepts them.
        let mut thoughts: HashMap<EntryId, u64> = HashMap::new();
        for message in &conversation.messages {
            let of_thoughts = message.parts.iter().filter_map(|part| match part {
                Part::Thinking { text, .. } => Some(estimate_tokens(text)),
                _ => None,
            });
            if let Some(entry) = message.entries.first() {
                *thoughts.entry(*entry).or_default() += of_thoughts.sum::<u64>();
            }
        }
        let entry = |view: EntryView| {
            let sent = estimate_blocks(&view.entry.blocks_in_context(), &picture_size);
            let whole = estimate_blocks(&view.entry.blocks, &picture_size);
            ContextEntry {
                number: view.number,
                id: view.id,
                tokens: scaled(sent.all + thoughts.get(&view.id).copied().unwrap_or_default()),
                output: scaled(sent.output),
                images: scaled(sent.images),
                removed: scaled(whole.all.saturating_sub(sent.all)),
                not_in_context: view.entry.not_in_context(),
                preview: view.entry.preview(),
                role: view.entry.role,
            }
        };
        let last = last_context(&reader, thread, &take, take.entries.len())?;
        let next = gather(&self.folder, &take, self.timeline.now(), last.as_deref());
        let files = if next.entries.is_empty() { Vec::new() } else { next.sizes() };
        Ok(ContextSize {
            model: self.backend.model().to_owned(),
            window: self.window,
            reserved: reserve(self, &settings).into(),
            tokens,
            calibrated: calibration.is_some(),
            system: scaled(system),
            tools: scaled(tools),
            files: files.into_iter().map(|(path, tokens)| ContextFileSize { path, tokens }).collect(),
            entries: views.into_iter().map(entry).collect(),
        })
    }
}

fn estimate_blocks(
    blocks: &[Block],
    picture_size: &dyn Fn(&str, retake_model::content::ContentId) -> u64,
) -> Estimate {
    let mut found = Estimate::default();
    for block in blocks {
        found.all += match block {
            Block::Text { text, .. } => estimate_tokens(text),
            Block::ToolCall { call, name, input, .. } => {
                estimate_tokens(call) + estimate_tokens(name) + estimate_tokens(input.as_str())
            }
            Block::ToolResult { call, text, .. } => {
                found.output += estimate_tokens(text);
                estimate_tokens(call) + estimate_tokens(text)
            }
            Block::Image { media, blob, .. } => {
                let tokens = picture_size(media, *blob);
                found.images += tokens;
                tokens
            }
            Block::Thinking { .. } | Block::Unknown { .. } => 0,
        };
    }
    found
}
