//! What reaches a model: a pure function of the entries, valid for every provider whatever was done to them.
//!
//! ```text
//!   entries ──► converse ──► Conversation ──► request ──► the body of a request
//!   as edited,              neutral, valid               one encoder per wire,
//!   cut, inserted,          by construction              checked by `rules`
//!   interrupted
//! ```
//!
//! A [`Conversation`] keeps what all providers demand, so that the encoders only spell it out:
//!
//! - speakers alternate, and no message is empty;
//! - each call of a message has exactly one result, at the beginning of the next message, in the order of the calls;
//! - names of calls are unique, and they and the names of tools use only letters that everyone accepts;
//! - the input of a call is a JSON object.
//!
//! What does not fit is never dropped silently if a person could read it: a result whose call is gone, and a call in
//! an entry that is not the assistant's any more, become quoted text. A call without a result gets one that says
//! that it was interrupted. Roles that providers do not have speak as the user, under a label.
//!
//! Thoughts go back only to the wire and model that sealed them, and only while their entry is as it was written
//! and something of it follows them; otherwise they are left out. Where a model binds its thoughts to all that came
//! before them, they go back only behind exactly that (`binding`). Blocks of unknown types are left out.
//!
//! **The prefix.** A message depends on nothing that comes later, but for the last two: the answer that is being
//! given, and what answers its calls. So what a provider has cached stays good while entries are appended, and
//! [`uncached_tokens`] says what an edit costs.

mod anthropic;
mod binding;
pub mod campaign;
mod chat;
mod converse;
mod cost;
mod gemini;
mod names;
mod request;
mod responses;
pub mod rules;
#[doc(hidden)]
pub mod sample;
mod schema;
mod seal;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use binding::{REQUEST_PREFIX, THOUGHTS_OMITTED, request_prefix};
pub use converse::converse;
pub use cost::{estimate_tokens, message_tokens, shared_prefix, uncached_tokens};
pub use names::tool_name;
pub use request::{
    Ask, Dialect, EffortWords, Thinking, ThinkingField, Thoughts, ToolSpec, document_limit, request,
};
pub use seal::{Seal, Token, Wire};

use crate::content::ContentId;
use crate::id::EntryId;

/// What was said, as every provider can be told it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The messages; speakers alternate.
    pub messages: Vec<Message>,
}

/// All that one side says before the other does.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Which side.
    pub speaker: Speaker,
    /// What it says, at least one part.
    pub parts: Vec<Part>,
    /// The entries that it was made of, in order.
    pub entries: Vec<EntryId>,
}

/// The two sides that every provider knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person, the tools, and everyone else who is not the model.
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
        /// What its writer needs to see again with it.
        seal: Option<Seal>,
    },
    /// A thought, always with something after it that came from the same entry. The assistant's only.
    Thinking {
        /// The thought; may be empty where only its seal is known.
        text: String,
        /// What its writer needs to see again with it.
        seal: Seal,
    },
    /// A tool that the assistant wants run. The assistant's only.
    Call {
        /// The call's name, unique in the conversation.
        call: String,
        /// The tool.
        name: String,
        /// What the tool is given: always an object.
        input: Value,
        /// The model that made it, if that is known.
        model: Option<String>,
        /// What its writer needs to see again with it.
        seal: Option<Seal>,
    },
    /// What came of a call of the message before. The user's only, before anything else.
    Result {
        /// Which call.
        call: String,
        /// The tool.
        name: String,
        /// What the tool said; never blank.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// A picture. The user's only.
    Image {
        /// Its media type.
        media: String,
        /// Its bytes, as a blob.
        content: ContentId,
    },
}
