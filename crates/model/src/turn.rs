//! A turn while it runs: what is known of it that is not on the timeline yet, and the letters that reach it.
//!
//! ```text
//!   the log      prompt ───────────────────────────► answer ─► tool result ─► …      one operation each
//!   beside it        └ the answer so far, every moment ┘                             gone once it is in the log
//! ```
//!
//! A token does not become an operation. What has arrived of an answer is kept beside the log and replaced every
//! moment; after a crash it becomes an entry that says that it was interrupted.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::entry::Block;
use crate::id::{EntryId, TakeId, ThreadId, TurnId};
use crate::time::Timestamp;

/// A turn that runs, or that its program did not live to end.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningTurn {
    /// The thread.
    #[n(0)]
    pub thread: ThreadId,
    /// The take that it belongs to.
    #[n(1)]
    pub take: TakeId,
    /// The turn.
    #[n(2)]
    pub turn: TurnId,
    /// When it began.
    #[n(3)]
    pub started: Timestamp,
    /// The process that runs it, for people.
    #[n(4)]
    pub process: u32,
    /// What has arrived of the answer.
    #[n(5)]
    pub partial: Option<PartialAnswer>,
}

/// What has arrived of an answer.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartialAnswer {
    /// The entry that it becomes.
    #[n(0)]
    pub entry: EntryId,
    /// What has arrived.
    #[n(1)]
    pub blocks: Vec<Block>,
    /// The model that answers.
    #[n(2)]
    pub model: Option<String>,
    /// When the answer began.
    #[n(3)]
    pub began: Timestamp,
}

impl Letter {
    /// The call that it decides about.
    pub fn call(&self) -> Option<&str> {
        match self {
            Self::Decide { call, .. } => Some(call),
            Self::Interrupt | Self::Steer { .. } => None,
        }
    }
}

/// What somebody wants of a turn that runs, perhaps in another process.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Letter {
    /// End it as soon as possible.
    #[n(0)]
    Interrupt,
    /// Tell the model something before it is called again.
    #[n(1)]
    Steer {
        /// The entry that the message becomes.
        #[n(0)]
        entry: EntryId,
        /// The message.
        #[n(1)]
        text: String,
    },
    /// Answer to a tool call that waits for a person.
    #[n(2)]
    Decide {
        /// Which call.
        #[n(0)]
        call: String,
        /// Whether it may run.
        #[n(1)]
        allowed: bool,
        /// Whether the same call need not be asked about again in this project.
        #[n(2)]
        remember: bool,
        /// What the model is told where it may not.
        #[n(3)]
        reason: Option<String>,
    },
}
