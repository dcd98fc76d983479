//! A conversation as the body of a request.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names::tool_name;
use super::seal::Wire;
use super::{Conversation, Message, Part, Speaker, anthropic, chat, gemini, responses};
use crate::content::ContentId;
use crate::entry::PDF;
use crate::settings::Effort;

/// What is asked, apart from what was said so far.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// How the request is written.
    pub wire: Wire,
    /// What is particular to this provider.
    pub dialect: Dialect,
    /// The model that is to answer.
    pub model: &'a str,
    /// The system prompt; blank if there is none.
    pub system: &'a str,
    /// The tools that the model may use.
    pub tools: &'a [ToolSpec],
    /// The most tokens that it may answer with.
    pub max_tokens: u32,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// How much it is to think; `None` leaves that to the model.
    pub thinking: Option<Thinking>,
    /// Whether thoughts of earlier answers are sent back.
    pub thoughts: Thoughts,
}

/// How much a model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// How hard, for providers that take a word.
    pub effort: Effort,
    /// For how many tokens, for providers that take a number.
    pub budget: u32,
}

impl From<Effort> for Thinking {
    fn from(effort: Effort) -> Self {
        Self { effort, budget: effort.budget() }
    }
}

/// Which thoughts of earlier answers a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoughts {
    /// Those that their provider accepts, as far as Retake can tell.
    #[default]
    Accepted,
    /// None: the provider refused them.
    Omitted,
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes: a JSON schema of an object.
    pub schema: Value,
}

/// Where providers of one wire differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each read in one place")]
pub struct Dialect {
    /// Whether places to cache up to are marked. Anthropic's wire only.
    pub cache_markers: bool,
    /// Whether the model can see pictures.
    pub images: bool,
    /// Whether temperature and nucleus sampling are taken.
    pub sampling: bool,
    /// How thinking is asked for.
    pub thinking: ThinkingField,
    /// The words for no effort and for the highest one. Those between have the same names everywhere.
    pub effort_words: EffortWords,
    /// Whether a thought is bound to the whole request that it answers, so that it is refused after any change before
    /// it. Anthropic's wire only.
    pub bound_thoughts: bool,
    /// Whether the provider can be asked to drop thoughts that are bound to another request, instead of refusing them
    /// all. Anthropic's wire only.
    pub drop_blocks: bool,
    /// Whether thoughts go back in the field that they came in. The Chat wire only.
    pub return_reasoning: bool,
    /// Whether function tools are refused unless reasoning is off. The Chat wire only.
    pub tools_without_reasoning: bool,
    /// Whether ids of calls have exactly nine letters and digits. The Chat wire only.
    pub nine_letter_ids: bool,
    /// Whether the limit is called `max_completion_tokens`. The Chat wire only.
    pub completion_tokens: bool,
    /// Whether a stream can be asked to end with its usage. The Chat wire only.
    pub stream_usage: bool,
    /// Whether a call without a signature is given the stand-in that Google documents for calls which another model
    /// made; Gemini 3 refuses them otherwise. Gemini's wire only.
    pub stand_in_signatures: bool,
}

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingField {
    /// Not at all.
    None,
    /// By a number of tokens, at least so many.
    Budget {
        /// The least that the model takes.
        least: u32,
    },
    /// By a word in the wire's usual field.
    Effort,
    /// By a word in an object `reasoning`, as `OpenRouter` has it. The Chat wire only.
    Reasoning,
    /// By a word, and by an object `thinking` that turns it off, as `DeepSeek` has it. The Chat wire only.
    Switch,
    /// By a level. Gemini's wire only.
    Level,
    /// The model decides by itself, guided by a word. Anthropic's wire only.
    Adaptive {
        /// Whether it cannot be turned off.
        always: bool,
    },
}

/// The words for the two ends of the scale of efforts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffortWords {
    /// No effort, or the least that there is.
    pub off: &'static str,
    /// The highest.
    pub max: &'static str,
}

impl Dialect {
    /// The word for an effort.
    pub(super) fn word(&self, effort: Effort) -> &'static str {
        match effort {
            Effort::Off => self.effort_words.off,
            Effort::Max => self.effort_words.max,
            Effort::Low | Effort::Medium | Effort::High => effort.name(),
        }
    }
}

/// What a conversation begins with if the assistant had the first word.
const OPENING: &str = "Begin.";
/// What a conversation ends with if the assistant had the last word: several models refuse to go on from their own.
const GO_ON: &str = "Go on.";

impl Dialect {
    /// The dialect of the wire's own provider.
    pub fn of(wire: Wire) -> Self {
        Self {
            cache_markers: wire == Wire::Anthropic,
            images: true,
            sampling: true,
            thinking: match wire {
                Wire::Anthropic => ThinkingField::Budget { least: 1_024 },
                Wire::Gemini => ThinkingField::Budget { least: 0 },
                Wire::Responses => ThinkingField::Effort,
                Wire::Chat => ThinkingField::None,
            },
            effort_words: EffortWords { off: "low", max: "high" },
            bound_thoughts: false,
            drop_blocks: false,
            return_reasoning: true,
            tools_without_reasoning: false,
            nine_letter_ids: false,
            completion_tokens: false,
            stream_usage: true,
            stand_in_signatures: false,
        }
    }
}

/// The whole body of a streaming request. `pictures` gives the bytes of a picture, if they are there.
///
/// The body is the same for the same arguments, to the byte. Gemini's has neither model nor streaming in it: both are
/// part of the address there.
pub fn request(
    conversation: &Conversation,
    ask: &Ask<'_>,
    pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
) -> Value {
    let messages = framed(conversation);
    let said = Said { messages: &messages, pictures };
    match ask.wire {
        Wire::Anthropic => anthropic::body(&said, ask),
        Wire::Chat => chat::body(&said, ask),
        Wire::Responses => responses::body(&said, ask),
        Wire::Gemini => gemini::body(&said, ask),
    }
}

/// What was said, with all that an encoder needs to write it.
pub(super) struct Said<'a> {
    pub(super) messages: &'a [Cow<'a, Message>],
    pictures: &'a dyn Fn(ContentId) -> Option<Vec<u8>>,
}

/// A picture that can be sent, or what is said in its place.
pub(super) enum Picture {
    /// Its media type and its bytes in base64.
    Shown(String, String),
    /// The bytes of a PDF document in base64.
    Document(String),
    Missing(String),
}

impl Said<'_> {
    pub(super) fn picture(&self, media: &str, content: ContentId, ask: &Ask<'_>) -> Picture {
        let media = media.trim().to_ascii_lowercase();
        let media = if media == "image/jpg" { "image/jpeg".to_owned() } else { media };
        if media == PDF {
            return self.document(content, ask);
        }
        let missing = |why: &str| Picture::Missing(format!("[picture {media}: {why}]"));
        let (known, most): (&[&str], usize) = match ask.wire {
            Wire::Anthropic => (&["image/png", "image/jpeg", "image/gif", "image/webp"], 3_750_000),
            Wire::Chat | Wire::Responses => {
                (&["image/png", "image/jpeg", "image/gif", "image/webp"], 20_000_000)
            }
            Wire::Gemini => {
                (&["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"], 14_000_000)
            }
        };
        if !ask.dialect.images {
            return missing("this model is shown no pictures");
        }
        if !known.contains(&media.as_str()) {
            return missing("of a kind that cannot be shown");
        }
        match (self.pictures)(content) {
            None => missing("its bytes are gone"),
            Some(bytes) if bytes.is_empty() => missing("it is empty"),
            Some(bytes) if bytes.len() > most => missing("too large to be shown"),
            Some(bytes) => Picture::Shown(media, data_encoding::BASE64.encode(&bytes)),
        }
    }

    fn document(&self, content: ContentId, ask: &Ask<'_>) -> Picture {
        let missing = |why: &str| Picture::Missing(format!("[PDF document: {why}]"));
        let Some(most) = document_limit(ask.wire).filter(|_| ask.dialect.images) else {
            return missing("this provider is sent no documents");
        };
        match (self.pictures)(content) {
            None => missing("its bytes are gone"),
            Some(bytes) if bytes.is_empty() => missing("it is empty"),
            Some(bytes) if bytes.len() > most => missing("too large to be sent"),
            Some(bytes) => Picture::Document(data_encoding::BASE64.encode(&bytes)),
        }
    }
}

/// The largest PDF document that a wire takes, in bytes; `None` if it takes none.
///
/// Providers limit the whole request, in which bytes are a third longer: Anthropic to 32 MB, the others to more.
pub fn document_limit(wire: Wire) -> Option<usize> {
    match wire {
        Wire::Anthropic => Some(22_000_000),
        Wire::Responses => Some(32_000_000),
        Wire::Gemini => Some(14_000_000),
        // Some servers of this wire take files and others fail on them: nothing tells which.
        Wire::Chat => None,
    }
}

/// The tools that a request declares, and whether the model may call them.
///
/// Providers refuse calls in what was said if there are no tools. Where none are left, those that were called are
/// named once more, and closed.
pub(super) struct Declared {
    pub(super) tools: Vec<ToolSpec>,
    pub(super) closed: bool,
}

pub(super) fn declared(said: &Said<'_>, ask: &Ask<'_>) -> Declared {
    let mut seen = BTreeSet::new();
    let renamed = ask.tools.iter().map(|tool| ToolSpec { name: tool_name(&tool.name), ..tool.clone() });
    let tools: Vec<ToolSpec> = renamed.filter(|tool| seen.insert(tool.name.clone())).collect();
    if !tools.is_empty() {
        return Declared { tools, closed: false };
    }
    let parts = said.messages.iter().flat_map(|message| &message.parts);
    let called: BTreeSet<&str> = parts
        .filter_map(|part| match part {
            Part::Call { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let stub = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "No longer available.".to_owned(),
        schema: json!({"type": "object", "properties": {}}),
    };
    Declared { tools: called.into_iter().map(stub).collect(), closed: true }
}

/// A description that is not blank, which some providers insist on.
pub(super) fn description(tool: &ToolSpec) -> &str {
    if tool.description.trim().is_empty() { "No description." } else { &tool.description }
}

/// A schema that is an object's, as all providers want it.
pub(super) fn object_schema(schema: &Value) -> Value {
    let Value::Object(given) = schema else { return json!({"type": "object", "properties": {}}) };
    let mut schema = given.clone();
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// The tokens that must be left for the answer beside a budget for thinking.
const LEAST_ANSWER: u32 = 1_024;

/// The thinking budget that leaves room for the answer; nothing if there is too little room for both.
pub(super) fn budget(thinking: Thinking, least: u32, max_tokens: u32) -> Option<u32> {
    let room = max_tokens.checked_sub(LEAST_ANSWER)?;
    (room >= least).then(|| thinking.budget.clamp(least, room))
}

/// A number that JSON can hold.
pub(super) fn number(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// The messages, with the user first and last.
fn framed(conversation: &Conversation) -> Vec<Cow<'_, Message>> {
    let aside = |text: &str| {
        let parts = vec![Part::Text { text: text.to_owned(), seal: None }];
        Cow::Owned(Message { speaker: Speaker::User, parts, entries: Vec::new() })
    };
    let mut messages: Vec<Cow<'_, Message>> = conversation.messages.iter().map(Cow::Borrowed).collect();
    if messages.first().is_none_or(|first| first.speaker == Speaker::Assistant) {
        messages.insert(0, aside(OPENING));
    }
    if messages.last().is_some_and(|last| last.speaker == Speaker::Assistant) {
        messages.push(aside(GO_ON));
    }
    messages
}
