//! The steps of a turn, as recorded in operations.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::agent::ToolOutcome;
use crate::content::ContentId;
use crate::id::{EntryId, TakeId};

/// Entries appended to a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddedEntries {
    /// The first of them.
    #[n(0)]
    pub entry: EntryId,
    /// Its content.
    #[n(1)]
    pub version: ContentId,
    /// Number of entries.
    #[n(2)]
    pub count: u64,
    /// Position of the first one, from 0.
    #[n(3)]
    pub position: u64,
}

/// One step of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnStep {
    /// The turn started.
    #[n(0)]
    Started {
        /// The origin of the take, if it was forked for this turn.
        #[n(0)]
        forked: Option<ForkOrigin>,
    },
    /// The model answered.
    #[n(1)]
    Answered,
    /// A tool call needs the user's approval.
    #[n(2)]
    ApprovalRequested {
        /// The call.
        #[n(0)]
        call: String,
        /// The tool.
        #[n(1)]
        tool: String,
    },
    /// A tool is about to run.
    #[n(3)]
    ToolStarted {
        /// The call.
        #[n(0)]
        call: String,
        /// The tool.
        #[n(1)]
        tool: String,
    },
    /// A tool ended or was denied.
    #[n(4)]
    ToolEnded {
        /// The call.
        #[n(0)]
        call: String,
        /// The tool.
        #[n(1)]
        tool: String,
        /// The outcome.
        #[n(2)]
        outcome: ToolOutcome,
    },
    /// The model is called again after a failure or a message from the user.
    #[n(5)]
    CalledAgain,
    /// The turn failed.
    #[n(6)]
    Failed {
        /// The error message.
        #[n(0)]
        message: String,
    },
    /// The user stopped it, or the process exited or was killed.
    #[n(7)]
    Interrupted,
    /// The turn was resumed.
    #[n(8)]
    Resumed,
    /// The hook after the tools is about to run.
    #[n(9)]
    HookStarted,
    /// The hook after the tools ended.
    #[n(10)]
    HookEnded {
        /// The outcome.
        #[n(0)]
        outcome: ToolOutcome,
    },
}

/// The origin of a take that was forked for a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkOrigin {
    /// The source take.
    #[n(0)]
    pub from: TakeId,
    /// The user message.
    #[n(1)]
    pub at: EntryId,
    /// The name of the new take.
    #[n(2)]
    pub name: String,
}
