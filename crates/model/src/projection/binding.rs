//! Thoughts that are bound to all that came before them.
//!
//! From Claude 5 on, a thought is valid only behind exactly the request that it answers: the same model, system prompt
//! and tools, and the same messages with the same thoughts in them. So the digest of a request is stored with its
//! answer ([`REQUEST_PREFIX`]), and a thought goes back only where all that stands before it has that digest.
//!
//! ```text
//!   model, system, tools │ user 1 │ thought 1, text │ user 2 │ thought 2, call │ result │ …
//!   ├─────── digest D1 ───────────┤ stored with the answer of thought 1        │
//!   ├─────── digest D2 ────────────────────────────────┤ stored with that of thought 2
//!
//!   user 1 is edited: D1 and D2 no longer match, so both thoughts stay at home.
//!   The next answer gets the digest of what was really sent, and its thoughts are good behind it.
//! ```
//!
//! Whether a thought goes back depends only on what stands before it. So appending never changes what was sent, an undo
//! brings thoughts back, and a thought that is left out takes with it every later one that was made behind it. An
//! answer without a digest (older, imported, or put together from what a crash left) proves nothing: its thoughts are
//! left out.
//!
//! A provider that refuses thoughts all the same is asked again without any. The answer to that is marked
//! ([`THOUGHTS_OMITTED`]), and thoughts before it are not sent again.

use serde_json::{Map, Value};

use super::seal::Wire;
use crate::entry::EntryVersion;

/// The field of an answer with the digest of its request.
pub const REQUEST_PREFIX: &str = "request_prefix";
/// The field of an answer whose request carried no thoughts because the provider had refused them: the wire.
pub const THOUGHTS_OMITTED: &str = "thoughts_omitted";

/// Reads a request message by message, and knows the digest of what it has read.
pub(super) struct Prefix(blake3::Hasher);

impl Prefix {
    /// All that comes before the messages.
    pub(super) fn new(model: &str, system: &Value, tools: &Value) -> Self {
        let mut prefix = Self(blake3::Hasher::new());
        prefix.add(&Value::String(model.to_owned()));
        prefix.add(&unmarked(system));
        prefix.add(&unmarked(tools));
        prefix
    }

    /// The next message. Where it is marked for the cache does not count.
    pub(super) fn push(&mut self, message: &Value) {
        self.add(&unmarked(message));
    }

    pub(super) fn digest(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    fn add(&mut self, value: &Value) {
        let text = value.to_string();
        // With its length, so that no two lists of messages read alike.
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }
}

/// The digest of a request of Anthropic's wire, to be stored with its answer; nothing for other wires.
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

/// The wire whose thoughts before an answer are refused, if the answer says so.
pub(super) fn omits_thoughts(entry: &EntryVersion) -> Option<Wire> {
    let name: String = serde_json::from_str(entry.extra.get(THOUGHTS_OMITTED)?.as_str()).ok()?;
    Wire::of(&name)
}

/// A value without markers for the cache.
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

/// Markers stand on blocks only; what a tool was given or takes may have a field of that name.
fn shallow(name: &str, value: &Value) -> Value {
    match name {
        "content" => unmarked(value),
        _ => value.clone(),
    }
}
