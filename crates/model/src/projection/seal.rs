//! Opaque provider data on parts of an answer, such as signatures, which must be sent back unchanged.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::binding::REQUEST_PREFIX;
use crate::entry::{Block, EntryVersion, Fields, RoleKind};

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Chat Completions and compatible APIs.
    Chat,
    /// `OpenAI` Responses.
    Responses,
    /// Google's Gemini.
    Gemini,
}

/// A provider's seal on a part, and the wire and model that accept it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seal {
    /// The wire that it came over.
    pub wire: Wire,
    /// The model that wrote the part.
    pub model: String,
    /// The content of the seal.
    pub token: Token,
    /// The digest of the request that the part answers, if the part is known to follow it directly.
    pub prefix: Option<String>,
}

/// The content of a seal.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Anthropic's signature of a thought.
    Signature(String),
    /// A thought that Anthropic encrypts.
    Redacted(String),
    /// A reasoning item of Responses, unchanged.
    Reasoning(Value),
    /// The phase of a message of Responses.
    Phase(String),
    /// Gemini's signature of a part.
    Thought(String),
    /// A thought of Chat Completions: the field of its text, and its unchanged details.
    Reasoned {
        /// The name of the field.
        field: String,
        /// The list `reasoning_details`, assembled from its pieces.
        details: Option<Value>,
    },
    /// The field `extra_content` of a call of Chat Completions.
    Extra(Value),
}

impl Wire {
    /// Every wire.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// Its name in the field `wire` of blocks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// Finds a wire by name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }
}

impl Seal {
    /// Whether the seal may be sent to this wire and model.
    pub(super) fn fits(&self, wire: Wire, model: &str) -> bool {
        self.wire == wire && self.model == model
    }

    /// The seal of a thought, if it is still valid. A thought without a seal is never sent.
    pub(super) fn of_thought(entry: &EntryVersion, block: &Block) -> Option<Self> {
        let (wire, model) = writer(entry, block)?;
        let token = match (wire, block) {
            (Wire::Anthropic, Block::Thinking { signature: Some(signature), .. })
                if !signature.is_empty() =>
            {
                Token::Signature(signature.clone())
            }
            (Wire::Anthropic, Block::Thinking { extra, .. }) => Token::Redacted(words(extra, "redacted")?),
            (Wire::Anthropic, Block::Unknown { kind, extra }) if kind == "redacted_thinking" => {
                Token::Redacted(words(extra, "data")?)
            }
            (Wire::Responses, Block::Thinking { extra, .. }) => Token::Reasoning(reasoning(extra)?),
            (Wire::Chat, Block::Thinking { text, extra, .. }) => {
                let details = details(extra);
                if text.trim().is_empty() && details.is_none() {
                    return None;
                }
                let field = words(extra, "field").unwrap_or_else(|| "reasoning_content".to_owned());
                Token::Reasoned { field, details }
            }
            _ => return None,
        };
        let prefix = entry.extra.get(REQUEST_PREFIX);
        let prefix = prefix.and_then(|prefix| serde_json::from_str(prefix.as_str()).ok());
        Some(Self { wire, model, token, prefix })
    }

    /// The seal of a text or a call, if it has a valid one.
    pub(super) fn of_part(entry: &EntryVersion, block: &Block) -> Option<Self> {
        let (wire, model) = writer(entry, block)?;
        let token = match wire {
            Wire::Gemini => Token::Thought(words(block.extra(), "thought_signature")?),
            Wire::Responses => match words(block.extra(), "phase") {
                Some(phase) => Token::Phase(phase),
                None => Token::Reasoning(reasoning(block.extra())?),
            },
            Wire::Chat => Token::Extra(object(block.extra(), "extra_content")?),
            Wire::Anthropic => return None,
        };
        Some(Self { wire, model, token, prefix: None })
    }
}

/// The wire and model that wrote a block, if it is unchanged.
fn writer(entry: &EntryVersion, block: &Block) -> Option<(Wire, String)> {
    if entry.edited.is_some() || RoleKind::of(&entry.role) != RoleKind::Assistant {
        return None;
    }
    let wire = Wire::of(&words(block.extra(), "wire")?)?;
    Some((wire, entry.model.clone()?))
}

fn words(extra: &Fields, name: &str) -> Option<String> {
    let text: String = serde_json::from_str(extra.get(name)?.as_str()).ok()?;
    (!text.is_empty()).then_some(text)
}

/// A complete reasoning item. It is useless without its encrypted content: the provider does not store items
/// and would not find it by its id, which the API requires nevertheless.
fn reasoning(extra: &Fields) -> Option<Value> {
    let Value::Object(item) = serde_json::from_str(extra.get("reasoning")?.as_str()).ok()? else {
        return None;
    };
    let sealed = item.get("encrypted_content").and_then(Value::as_str)?;
    let summary = item.get("summary").filter(|summary| summary.is_array()).cloned();
    let summary = summary.unwrap_or_else(|| Value::Array(Vec::new()));
    if sealed.is_empty() {
        return None;
    }
    let mut complete = json!({"type": "reasoning"});
    if let Some(id) = item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        complete["id"] = id.into();
    }
    complete["summary"] = summary;
    complete["encrypted_content"] = sealed.into();
    Some(complete)
}

fn object(extra: &Fields, name: &str) -> Option<Value> {
    serde_json::from_str(extra.get(name)?.as_str()).ok().filter(Value::is_object)
}

/// The list `reasoning_details` of a thought. A stream sends each item in pieces with the same type and
/// index; the text, summary or data of later pieces is appended, and all other fields are stored once. The
/// format goes back unchanged: it depends on the provider behind `OpenRouter`.
fn details(extra: &Fields) -> Option<Value> {
    let Value::Array(pieces) = serde_json::from_str(extra.get("reasoning_details")?.as_str()).ok()? else {
        return None;
    };
    let mut items: Vec<Map<String, Value>> = Vec::new();
    for piece in pieces {
        let Value::Object(mut piece) = piece else { continue };
        piece.retain(|_, value| !value.is_null());
        let same = |item: &Map<String, Value>| {
            item.get("type") == piece.get("type")
                && piece.contains_key("index")
                && item.get("index") == piece.get("index")
        };
        let Some(item) = items.last_mut().filter(|item| same(item)) else {
            items.push(piece);
            continue;
        };
        for (name, value) in piece {
            match (item.get_mut(&name), &value) {
                (Some(Value::String(known)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    known.push_str(more);
                }
                (Some(Value::String(known)), Value::String(more)) if known.is_empty() => known.push_str(more),
                (Some(_), _) => {}
                (None, _) => _ = item.insert(name, value),
            }
        }
    }
    (!items.is_empty()).then(|| items.into_iter().map(Value::Object).collect())
}
