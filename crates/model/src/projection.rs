//! Projection of entries into model requests: a pure function, valid for every provider whatever edits were
//! made.
//!
//! ```text
//!   entries ──► converse ──► Conversation ──► request ──► the body of a request
//!   as edited,              neutral, valid               one encoder per wire,
//!   cut, inserted,          by construction              checked by `rules`
//!   interrupted
//! ```
//!
//! A [`Conversation`] satisfies what all providers require, so that the encoders only serialize it:
//!
//! - speakers alternate, and no message is empty;
//! - each call of a message has exactly one result, at the start of the next message, in call order;
//! - call ids are unique, and they and the names of tools use only characters that all providers accept;
//! - the input of a call is a JSON object.
//!
//! Readable content that does not fit is never dropped silently: a result without its call, and a call in an
//! entry that is no longer the assistant's, become quoted text. A call without a result gets one that reports
//! the interruption. Roles that providers do not have become labelled user messages.
//!
//! Thoughts go back only to the wire and model that sealed them, only while their entry is unchanged, and
//! only if something from the entry follows them; otherwise they are omitted. If a model binds its thoughts
//! to everything before them, they go back only after exactly that (`binding`). Blocks of unknown types are
//! omitted.
//!
//! **The memory.** A turn begins with nearly the same entries as the one before. [`Remembered`] keeps their messages,
//! encoded, and continues after the last one that is still the same; the result is that of [`converse`] and [`request`],
//! to the byte.
//!
//! **The prefix.** A message never depends on later entries, except for the last two: the current answer and
//! the reply to its calls. So the provider's cache stays valid while entries are appended, and
//! [`uncached_tokens`] computes the cost of an edit.

mod anthropic;
mod binding;
mod body;
mod chat;
mod converse;
mod cost;
mod gemini;
mod names;
mod pictures;
mod remembered;
mod request;
mod responses;
pub mod rules;
mod schema;
mod seal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

pub use binding::{REQUEST_PREFIX, THOUGHTS_OMITTED, request_prefix};
pub use body::Body;
pub use converse::{NO_RESULT, converse};
pub use cost::{estimate_tokens, message_tokens, shared_prefix, uncached_tokens};
pub use names::tool_name;
pub use pictures::{picture_tokens, usual_picture_tokens};
pub use remembered::Remembered;
pub use request::{
    Ask, Dialect, EffortWords, Thinking, ThinkingField, Thoughts, ToolSpec, document_limit, request,
};
pub use seal::{Seal, Token, Wire};

use crate::content::ContentId;
use crate::id::EntryId;

/// A conversation in a form that every provider accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The messages; speakers alternate. Conversations of one memory share those that are the same.
    pub messages: Vec<Arc<Message>>,
}

/// Consecutive content of one speaker.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The speaker.
    pub speaker: Speaker,
    /// The content, at least one part.
    pub parts: Vec<Part>,
    /// The entries that it was built from, in order.
    pub entries: Vec<EntryId>,
}

/// The two roles that every provider knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user, the tools, and every other role except the model.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text that is not blank.
    Text {
        /// The text.
        text: String,
        /// Provider data to send back with it.
        seal: Option<Seal>,
    },
    /// A thought, always followed by something from the same entry, except over the Chat wire, where thoughts are
    /// a field of the message. Assistant only.
    Thinking {
        /// The thought; may be empty if only its seal is known.
        text: String,
        /// Provider data to send back with it.
        seal: Seal,
    },
    /// A tool call. Assistant only.
    Call {
        /// The id of the call, unique in the conversation.
        call: String,
        /// The id as the model wrote it, if only its spelling differs.
        given: Option<String>,
        /// The tool.
        name: String,
        /// The input of the tool: always an object.
        input: Value,
        /// The model that made the call, if known.
        model: Option<String>,
        /// Provider data to send back with it.
        seal: Option<Seal>,
    },
    /// The result of a call in the previous message. User only, before all other parts.
    Result {
        /// The id of the call.
        call: String,
        /// The tool.
        name: String,
        /// The output of the tool; never blank.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// A picture. User only.
    Image {
        /// Its media type.
        media: String,
        /// Its bytes, as a blob.
        content: ContentId,
    },
}
