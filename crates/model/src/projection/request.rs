//! Builds the body of a request from a conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::names::tool_name;
use super::seal::Wire;
use super::{Conversation, Message, Part, Speaker, anthropic, chat, gemini, responses};
use crate::content::ContentId;
use crate::entry::PDF;
use crate::settings::Effort;

/// The parameters of a request, without the conversation.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The wire protocol.
    pub wire: Wire,
    /// The provider's dialect.
    pub dialect: Dialect,
    /// The model to call.
    pub model: &'a str,
    /// The system prompt; may be blank.
    pub system: &'a str,
    /// The tools offered to the model.
    pub tools: &'a [ToolSpec],
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// How much the model thinks; `None` uses its default.
    pub thinking: Option<Thinking>,
    /// Whether to send thoughts of earlier answers.
    pub thoughts: Thoughts,
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// The effort, for providers that take a level.
    pub effort: Effort,
    /// The budget in tokens, for providers that take a number.
    pub budget: u32,
}

impl From<Effort> for Thinking {
    fn from(effort: Effort) -> Self {
        Self { effort, budget: effort.budget() }
    }
}

/// Which thoughts of earlier answers a request includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoughts {
    /// Those that the provider is expected to accept.
    #[default]
    Accepted,
    /// None: the provider refused them.
    Omitted,
}

/// The description of a tool for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its parameters: a JSON schema of an object.
    pub schema: Value,
}

/// Differences between providers of one wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each read in one place")]
pub struct Dialect {
    /// Whether to send cache markers. Anthropic's wire only.
    pub cache_markers: bool,
    /// Whether the model accepts pictures.
    pub images: bool,
    /// Whether the model accepts temperature and nucleus sampling.
    pub sampling: bool,
    /// How to request thinking.
    pub thinking: ThinkingField,
    /// The names of the lowest and highest effort. Those in between have the same names everywhere.
    pub effort_words: EffortWords,
    /// Whether a thought is bound to the whole request that it answers, and is refused after any earlier
    /// change. Anthropic's wire only.
    pub bound_thoughts: bool,
    /// Whether the provider can drop thoughts that are bound to another request, instead of refusing the
    /// whole request. Anthropic's wire only.
    pub drop_blocks: bool,
    /// Whether to send thoughts back in the field that they came in. The Chat wire only.
    pub return_reasoning: bool,
    /// Whether the server also reads thoughts in the field `reasoning`, as Ollama does. The Chat wire only.
    pub reads_reasoning: bool,
    /// Whether the provider refuses function tools unless reasoning is off. The Chat wire only.
    pub tools_without_reasoning: bool,
    /// Whether call ids must have exactly nine letters and digits. The Chat wire only.
    pub nine_letter_ids: bool,
    /// Whether the output limit is called `max_completion_tokens`. The Chat wire only.
    pub completion_tokens: bool,
    /// Whether a stream can end with its usage on request. The Chat wire only.
    pub stream_usage: bool,
    /// Whether to send a placeholder for missing call signatures. Gemini 3 refuses calls of other models
    /// without the one that Google documents. Gemini's wire only.
    pub stand_in_signatures: bool,
}

/// How to request thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingField {
    /// Not supported.
    None,
    /// By a number of tokens, with a minimum.
    Budget {
        /// The minimum that the model accepts.
        least: u32,
    },
    /// By a level in the wire's usual field.
    Effort,
    /// By a level in an object `reasoning`, as `OpenRouter` expects it. The Chat wire only.
    Reasoning,
    /// By a level, and by an object `thinking` that turns it off, as `DeepSeek` expects it. The Chat wire
    /// only.
    Switch,
    /// By a level. Gemini's wire only.
    Level,
    /// The model decides, guided by a level. Anthropic's wire only.
    Adaptive {
        /// Whether thinking cannot be turned off.
        always: bool,
    },
}

/// The names of the lowest and the highest effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffortWords {
    /// No effort, or the minimum.
    pub off: &'static str,
    /// The maximum.
    pub max: &'static str,
}

impl Dialect {
    /// The name of an effort.
    pub(super) fn word(&self, effort: Effort) -> &'static str {
        match effort {
            Effort::Off => self.effort_words.off,
            Effort::Max => self.effort_words.max,
            Effort::Low | Effort::Medium | Effort::High => effort.name(),
        }
    }
}

/// First user message if the conversation starts with the assistant.
const OPENING: &str = "Begin.";
/// Last user message if the conversation ends with the assistant: several models refuse to continue their own
/// text.
const GO_ON: &str = "Go on.";

impl Dialect {
    /// The dialect of the wire's main provider.
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
            reads_reasoning: false,
            tools_without_reasoning: false,
            nine_letter_ids: false,
            completion_tokens: false,
            stream_usage: true,
            stand_in_signatures: false,
        }
    }
}

/// Builds the body of a streaming request. `pictures` returns the bytes of a picture, if available.
///
/// The body is deterministic to the byte. Gemini's body contains neither the model nor a streaming flag: both
/// are part of the URL.
pub fn request(
    conversation: &Conversation,
    ask: &Ask<'_>,
    pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
) -> Value {
    let messages = framed(conversation);
    let source = EncoderInput { messages: &messages, pictures };
    let mut body = source.body(ask);
    let mut encoder = Encoder::new(&source, ask, &body);
    let mut encoded: Vec<Vec<Value>> =
        messages.iter().map(|message| encoder.message(message, &source, ask)).collect();
    for (place, message) in source.marked(ask) {
        encoded[place] = vec![message];
    }
    let list = body[list_field(ask.wire)].as_array_mut().expect("the encoders begin a list");
    list.extend(encoded.into_iter().flatten());
    body
}

/// The field of the messages.
pub(super) fn list_field(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic | Wire::Chat => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    }
}

/// Encodes messages in order: what it writes depends only on those before.
#[derive(Debug)]
pub(super) enum Encoder {
    Anthropic(Box<anthropic::Encoder>),
    Chat(chat::Encoder),
    Responses(responses::Encoder),
    Gemini,
}

/// A place between two messages, to which an encoder can return.
#[derive(Clone, Debug)]
pub(super) enum EncoderMark {
    Anthropic(Box<anthropic::Encoder>),
    Chat(chat::Encoder),
    Responses((usize, usize)),
    Gemini,
}

impl Encoder {
    /// An encoder for the messages of a request with this body.
    pub(super) fn new(source: &EncoderInput<'_>, ask: &Ask<'_>, body: &Value) -> Self {
        match ask.wire {
            Wire::Anthropic => Self::Anthropic(Box::new(anthropic::Encoder::new(source, ask, body))),
            Wire::Chat => Self::Chat(chat::Encoder::default()),
            Wire::Responses => Self::Responses(responses::Encoder::default()),
            Wire::Gemini => Self::Gemini,
        }
    }

    /// Encodes the next message.
    pub(super) fn message(
        &mut self,
        message: &Message,
        source: &EncoderInput<'_>,
        ask: &Ask<'_>,
    ) -> Vec<Value> {
        match self {
            Self::Anthropic(encoder) => vec![encoder.message(message, source, ask)],
            Self::Chat(encoder) => encoder.message(message, source, ask),
            Self::Responses(encoder) => encoder.message(message, source, ask),
            Self::Gemini => vec![gemini::encoded(message, source, ask)],
        }
    }

    /// What a new encoder's messages depend on beside the wire, dialect and model, and then the digest of all messages.
    pub(super) fn state(&self) -> Option<(bool, String)> {
        match self {
            Self::Anthropic(encoder) => Some(encoder.state()),
            Self::Chat(_) | Self::Responses(_) | Self::Gemini => None,
        }
    }

    pub(super) fn mark(&self) -> EncoderMark {
        match self {
            Self::Anthropic(encoder) => EncoderMark::Anthropic(encoder.clone()),
            Self::Chat(encoder) => EncoderMark::Chat(encoder.clone()),
            Self::Responses(encoder) => EncoderMark::Responses(encoder.mark()),
            Self::Gemini => EncoderMark::Gemini,
        }
    }

    pub(super) fn rewind(&mut self, to: &EncoderMark) {
        match (self, to) {
            (Self::Anthropic(encoder), EncoderMark::Anthropic(mark)) => encoder.clone_from(mark),
            (Self::Chat(encoder), EncoderMark::Chat(mark)) => encoder.clone_from(mark),
            (Self::Responses(encoder), EncoderMark::Responses(mark)) => encoder.rewind(*mark),
            (Self::Gemini, EncoderMark::Gemini) => {}
            _ => unreachable!("a mark is of the encoder that returns to it"),
        }
    }
}

/// The messages and pictures that an encoder writes.
pub(super) struct EncoderInput<'a> {
    pub(super) messages: &'a [Arc<Message>],
    pub(super) pictures: &'a dyn Fn(ContentId) -> Option<Vec<u8>>,
}

/// A picture to send, or the text to send instead.
pub(super) enum Picture {
    /// The media type, and the bytes in base64.
    Shown(String, String),
    /// A PDF document in base64.
    Document(String),
    Missing(String),
}

impl EncoderInput<'_> {
    /// Everything of a request but its messages.
    pub(super) fn body(&self, ask: &Ask<'_>) -> Value {
        match ask.wire {
            Wire::Anthropic => anthropic::body(self, ask),
            Wire::Chat => chat::body(self, ask),
            Wire::Responses => responses::body(self, ask),
            Wire::Gemini => gemini::body(self, ask),
        }
    }

    /// The messages that are encoded in another way when they are among the last.
    pub(super) fn marked(&self, ask: &Ask<'_>) -> Vec<(usize, Value)> {
        match ask.wire {
            Wire::Anthropic => anthropic::marked(self, ask),
            Wire::Chat | Wire::Responses | Wire::Gemini => Vec::new(),
        }
    }

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
            return missing("this model accepts no pictures");
        }
        if !known.contains(&media.as_str()) {
            return missing("of an unsupported type");
        }
        match (self.pictures)(content) {
            None => missing("its content is missing"),
            Some(bytes) if bytes.is_empty() => missing("it is empty"),
            Some(bytes) if bytes.len() > most => missing("too large to show"),
            Some(bytes) => Picture::Shown(media, data_encoding::BASE64.encode(&bytes)),
        }
    }

    fn document(&self, content: ContentId, ask: &Ask<'_>) -> Picture {
        let missing = |why: &str| Picture::Missing(format!("[PDF document: {why}]"));
        let Some(most) = document_limit(ask.wire).filter(|_| ask.dialect.images) else {
            return missing("this provider accepts no documents");
        };
        match (self.pictures)(content) {
            None => missing("its content is missing"),
            Some(bytes) if bytes.is_empty() => missing("it is empty"),
            Some(bytes) if bytes.len() > most => missing("too large to send"),
            Some(bytes) => Picture::Document(data_encoding::BASE64.encode(&bytes)),
        }
    }
}

/// The largest PDF document that a wire accepts, in bytes; `None` if it accepts none.
///
/// Providers limit the whole request, where base64 adds a third: Anthropic to 32 MB, the others to more.
pub fn document_limit(wire: Wire) -> Option<usize> {
    match wire {
        Wire::Anthropic => Some(22_000_000),
        Wire::Responses => Some(32_000_000),
        Wire::Gemini => Some(14_000_000),
        // Some servers of this wire accept files and others fail on them, and there is no way to find out.
        Wire::Chat => None,
    }
}

/// The declared tools, and whether the model may call them.
///
/// Providers refuse past calls if a request declares no tools. If there are none, the called ones are
/// declared again, but the model may not call them.
pub(super) struct Declared {
    pub(super) tools: Vec<ToolSpec>,
    pub(super) closed: bool,
}

pub(super) fn declared(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Declared {
    let mut seen = BTreeSet::new();
    let renamed = ask.tools.iter().map(|tool| ToolSpec { name: tool_name(&tool.name), ..tool.clone() });
    let tools: Vec<ToolSpec> = renamed.filter(|tool| seen.insert(tool.name.clone())).collect();
    if !tools.is_empty() {
        return Declared { tools, closed: false };
    }
    let parts = source.messages.iter().flat_map(|message| &message.parts);
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

/// The description of a tool. Some providers refuse a blank one.
pub(super) fn description(tool: &ToolSpec) -> &str {
    if tool.description.trim().is_empty() { "No description." } else { &tool.description }
}

/// The schema as an object schema, which all providers require.
pub(super) fn object_schema(schema: &Value) -> Value {
    let Value::Object(given) = schema else { return json!({"type": "object", "properties": {}}) };
    let mut schema = given.clone();
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// Minimum tokens for the answer beside the thinking budget.
const LEAST_ANSWER: u32 = 1_024;

/// A thinking budget that leaves room for the answer; `None` if there is too little room for both.
pub(super) fn budget(thinking: Thinking, least: u32, max_tokens: u32) -> Option<u32> {
    let room = max_tokens.checked_sub(LEAST_ANSWER)?;
    (room >= least).then(|| thinking.budget.clamp(least, room))
}

/// A number that JSON can represent.
pub(super) fn number(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// The messages, starting and ending with the user.
pub(super) fn framed(conversation: &Conversation) -> Vec<Arc<Message>> {
    let aside = |text: &str| {
        let parts = vec![Part::Text { text: text.to_owned(), seal: None }];
        Arc::new(Message { speaker: Speaker::User, parts, entries: Vec::new() })
    };
    let mut messages = conversation.messages.clone();
    if messages.first().is_none_or(|first| first.speaker == Speaker::Assistant) {
        messages.insert(0, aside(OPENING));
    }
    if messages.last().is_some_and(|last| last.speaker == Speaker::Assistant) {
        messages.push(aside(GO_ON));
    }
    messages
}
