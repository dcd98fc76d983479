//! Thoughts that are bound to everything before them.
//!
//! From Claude 5 on, a thought is valid only after exactly the request that it answers: the same model,
//! system prompt and tools, and the same messages with the same thoughts. So the digest of a request is
//! stored with its answer ([`REQUEST_PREFIX`]), and a thought is sent back only if everything before it has
//! that digest.
//!
//! ```text
//!   model, system, tools │ user 1 │ thought 1, text │ user 2 │ thought 2, call │ result │ …
//!   ├─────── digest D1 ───────────┤ stored with the answer of thought 1        │
//!   ├─────── digest D2 ────────────────────────────────┤ stored with that of thought 2
//!
//!   user 1 is edited: D1 and D2 no longer match, so both thoughts are omitted.
//!   The next answer gets the digest of the actual request, and its thoughts are valid after it.
//! ```
//!
//! Whether a thought is sent depends only on what precedes it. So appending never changes the sent prefix, an
//! undo brings thoughts back, and omitting a thought also omits every later one that depends on it. Answers
//! without a digest (older, imported, or recovered after a crash) prove nothing: their thoughts are omitted.
//!
//! If a provider refuses thoughts anyway, the request is sent again without any. Its answer is marked
//! ([`THOUGHTS_OMITTED`]), and earlier thoughts are not sent again.

use serde_json::{Map, Value};

use super::seal::Wire;
use crate::entry::EntryVersion;

/// The field of an answer with the digest of its request.
pub const REQUEST_PREFIX: &str = "request_prefix";
/// The field of an answer whose request omitted thoughts because the provider had refused them. Its value is
/// the wire.
pub const THOUGHTS_OMITTED: &str = "thoughts_omitted";

/// Computes the digest of a request, message by message.
#[derive(Clone, Debug)]
pub(super) struct Prefix(blake3::Hasher);

impl Prefix {
    /// Starts with everything before the messages.
    pub(super) fn new(model: &str, system: &Value, tools: &Value) -> Self {
        let mut prefix = Self(blake3::Hasher::new());
        prefix.add(&Value::String(model.to_owned()));
        prefix.add(&unmarked(system));
        prefix.add(&unmarked(tools));
        prefix
    }

    /// Adds the next message, without its cache markers.
    pub(super) fn push(&mut self, message: &Value) {
        self.add(&unmarked(message));
    }

    pub(super) fn digest(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    fn add(&mut self, value: &Value) {
        let text = value.to_string();
        // Include the length, so that different lists of messages have different digests.
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }
}

/// The digest of a request on Anthropic's wire, to store with its answer; `None` for other wires.
pub fn request_prefix(body: &Value) -> Option<String> {
    let body = body.as_object()?;
    let field = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let messages = field("messages").as_array()?;
    let mut prefix = Prefix::new(body.get("model")?.as_str()?, field("system"), field("tools"));
    for message in messages {
        prefix.push(message);
    }
    Some(prefix.digest())
}

/// The wire for which thoughts before this answer are omitted, if any.
pub(super) fn omits_thoughts(entry: &EntryVersion) -> Option<Wire> {
    let name: String = serde_json::from_str(entry.extra.get(THOUGHTS_OMITTED)?.as_str()).ok()?;
    Wire::of(&name)
}

/// A value without cache markers.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(unmarked).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(
                kept.map(|(name, value)| (name.clone(), shallow(name, value))).collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}

/// Only blocks have markers; the input or schema of a tool may have a field of the same name.
fn shallow(name: &str, value: &Value) -> Value {
    match name {
        "content" => unmarked(value),
        _ => value.clone(),
    }
}
