//! What an operation of a turn did.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::agent::ToolOutcome;
use crate::content::ContentId;
use crate::id::{EntryId, TakeId};

/// Entries that came in behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Added {
    /// The first of them.
    #[n(0)]
    pub entry: EntryId,
    /// Its content.
    #[n(1)]
    pub version: ContentId,
    /// How many.
    #[n(2)]
    pub count: u64,
    /// Where the first one stands, counted from 0.
    #[n(3)]
    pub position: u64,
}

/// One step of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnStep {
    /// It began.
    #[n(0)]
    Started {
        /// The take that this one was forked from for it.
        #[n(0)]
        forked: Option<Forked>,
    },
    /// The model answered.
    #[n(1)]
    Answered,
    /// A person is asked whether a tool may run.
    #[n(2)]
    Asked {
        /// Which call.
        #[n(0)]
        call: String,
        /// Which tool.
        #[n(1)]
        tool: String,
    },
    /// A tool is about to run.
    #[n(3)]
    ToolRuns {
        /// Which call.
        #[n(0)]
        call: String,
        /// Which tool.
        #[n(1)]
        tool: String,
    },
    /// A tool has ended, or was not to run.
    #[n(4)]
    ToolEnded {
        /// Which call.
        #[n(0)]
        call: String,
        /// Which tool.
        #[n(1)]
        tool: String,
        /// What came of it.
        #[n(2)]
        outcome: ToolOutcome,
    },
    /// The model is asked again after a failure, or after a message from a person.
    #[n(5)]
    CalledAgain,
    /// Something went wrong.
    #[n(6)]
    Failed {
        /// What.
        #[n(0)]
        message: String,
    },
    /// A person stopped it, or its program did not live to end it.
    #[n(7)]
    Interrupted,
    /// It was taken up again.
    #[n(8)]
    Resumed,
}

/// Where a take was forked for a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// The take it came from.
    #[n(0)]
    pub from: TakeId,
    /// The user message.
    #[n(1)]
    pub at: EntryId,
    /// The name of the new one.
    #[n(2)]
    pub name: String,
}
