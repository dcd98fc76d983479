//! Running turns: their state that is not in the log yet, and the messages sent to them.
//!
//! ```text
//!   the log      prompt ───────────────────────────► answer ─► tool result ─► …      one operation each
//!   beside it        └ partial answer, updated often   ┘                             deleted afterwards
//! ```
//!
//! A token does not become an operation. The partial answer is stored beside the log and replaced
//! continuously; after a crash it becomes an entry marked as interrupted.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::agent::{Agent, AgentState};
use crate::entry::Block;
use crate::id::{EntryId, TakeId, ThreadId, TurnId};
use crate::time::Timestamp;

/// A turn that is running, or whose process was killed.
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
    /// Start time.
    #[n(3)]
    pub started: Timestamp,
    /// The process that runs it, for display.
    #[n(4)]
    pub process: u32,
    /// The partial answer.
    #[n(5)]
    pub partial: Option<PartialAnswer>,
    /// The state while an answer arrives, which is not in the log.
    #[n(6)]
    pub state: Option<AgentState>,
}

impl RunningTurn {
    /// The agent of the turn's take, with the newest state.
    pub fn agent(&self, logged: Agent) -> Agent {
        // A later step of the turn is in the log.
        match self.state.clone().filter(|_| logged.turn == self.turn && logged.state.is_answering()) {
            Some(state) => Agent { state, ..logged },
            None => logged,
        }
    }
}

/// The part of an answer received so far.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartialAnswer {
    /// The entry it becomes.
    #[n(0)]
    pub entry: EntryId,
    /// The content received so far.
    #[n(1)]
    pub blocks: Vec<Block>,
    /// The model.
    #[n(2)]
    pub model: Option<String>,
    /// Start time of the answer.
    #[n(3)]
    pub began: Timestamp,
}

impl TurnMessage {
    /// The tool call that the message decides.
    pub fn call(&self) -> Option<&str> {
        match self {
            Self::Decide { call, .. } => Some(call),
            Self::Interrupt | Self::Steer { .. } => None,
        }
    }
}

/// A message to a running turn, which may be in another process.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnMessage {
    /// Stop the turn as soon as possible.
    #[n(0)]
    Interrupt,
    /// Send a message to the model before its next call.
    #[n(1)]
    Steer {
        /// The entry that the message becomes.
        #[n(0)]
        entry: EntryId,
        /// The message.
        #[n(1)]
        text: String,
    },
    /// Decide a tool call that waits for approval.
    #[n(2)]
    Decide {
        /// The call.
        #[n(0)]
        call: String,
        /// Whether it may run.
        #[n(1)]
        allowed: bool,
        /// Whether to allow the same call in this project from now on.
        #[n(2)]
        remember: bool,
        /// The reason to give to the model if the call is denied.
        #[n(3)]
        reason: Option<String>,
    },
}
