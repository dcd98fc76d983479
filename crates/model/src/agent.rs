//! Where the agent of a take stands, and what comes next: one pure function of a state and an event.
//!
//! ```text
//!              Prompted                 Answered (no calls): the turn ends
//!   Waiting ─────────────► Calling ◄──────────────────────────────┐
//!      ▲                    │    ▲ ▲                              │ HookDone
//!      │ Interrupted        │    │ └── RetryDue, Resumed ── Failed│
//!      │ (from anywhere)    ▼    │                         ▲      │
//!      └──────────── Processing ─┼── Faulted ──────────────┘      │
//!                           │    │                                │
//!                           │ Answered (with calls)               │
//!                           ▼    │       all completed            │
//!                        Executing ─────────────────────────► PostTools
//! ```
//!
//! The state is kept inside the take's state, so any saved moment can be gone on from. The driver has one duty
//! from which everything else follows: **the new state is on disk before its actions are carried out**. A tool is
//! then known as running before it runs, and a crash leaves "interrupted", never a silent second run.
//!
//! Decisions that a reader may wonder about:
//!
//! - *A message during a turn* is the same event as a prompt. It is remembered where it would be lost otherwise:
//!   while an answer comes in, which may have no calls and would end the turn. [`Action::CallModel`] always brings
//!   in what was queued first.
//! - *A tool goes from pending to running to completed*. Only a call that never ran (denied, interrupted) skips
//!   the middle. `RunTool` is given once per call, over all crashes: on resume a running call is closed as
//!   interrupted, one that is pending is decided on again, for it never ran, and what allowed it may be gone.
//! - *The hook after the tools may run twice*, once before a crash and once after: it must bear that.
//! - *A call is closed in the same operation as the state that says so*, where that can be; if a crash comes between,
//!   the call has no result, and [`crate::projection`] tells the model that it was interrupted.
//! - *Shutting down closes what is open*, and remembers that the turn is not finished; resuming calls the model,
//!   which sees what was interrupted.

mod retry;
mod step;
#[cfg(test)]
mod tests;

use minicbor::{Decode, Encode};
use serde::Serialize;

pub use retry::{Fault, Policy};
pub use step::step;

use crate::id::TurnId;

/// Where the agent of a take stands. A take where nothing runs and nothing failed has none.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// The turn that it works on.
    #[n(0)]
    pub turn: TurnId,
    /// How far it is.
    #[n(1)]
    #[serde(flatten)]
    pub state: AgentState,
}

/// How far a turn is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AgentState {
    /// Nothing runs; the next move is a person's.
    #[n(0)]
    Waiting,
    /// The model was asked and has said nothing yet.
    #[n(1)]
    Calling {
        /// Which attempt at this call it is, from one.
        #[n(0)]
        attempt: u32,
        /// Whether a message came since the model was asked.
        #[n(1)]
        steered: bool,
    },
    /// The answer is coming in.
    #[n(2)]
    Processing {
        /// Which attempt at this call it is, from one.
        #[n(0)]
        attempt: u32,
        /// Whether a message came since the model was asked.
        #[n(1)]
        steered: bool,
    },
    /// The tools that the model asked for are being decided on and run.
    #[n(3)]
    Executing {
        /// The calls of this round, in the order that the model made them.
        #[n(0)]
        calls: Vec<ToolRun>,
    },
    /// All tools are done, and the model has not been told yet.
    #[n(4)]
    PostTools {
        /// The calls of this round, all completed.
        #[n(0)]
        calls: Vec<ToolRun>,
    },
    /// Something went wrong.
    #[n(5)]
    Failed {
        /// Where it went wrong.
        #[n(0)]
        origin: Origin,
        /// What a person is told.
        #[n(1)]
        message: String,
        /// How often it was tried.
        #[n(2)]
        attempts: u32,
        /// After how many milliseconds it is tried again by itself; `None` if a person has to decide.
        #[n(3)]
        retry_in: Option<u64>,
    },
    /// The program ends.
    #[n(6)]
    ShuttingDown {
        /// Whether a turn was going on, which can be resumed.
        #[n(0)]
        unfinished: bool,
    },
}

/// One call of a tool, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRun {
    /// The call's name, as in its entry.
    #[n(0)]
    pub call: String,
    /// The tool.
    #[n(1)]
    pub name: String,
    /// How far it is.
    #[n(2)]
    #[serde(flatten)]
    pub status: ToolStatus,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolStatus {
    /// Nobody has decided on it.
    #[n(0)]
    Pending,
    /// A person is being asked.
    #[n(1)]
    Asking,
    /// It runs, or ran when the program died.
    #[n(2)]
    Running,
    /// It has a result.
    #[n(3)]
    Completed {
        /// What came of it.
        #[n(0)]
        outcome: ToolOutcome,
    },
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool did what it was asked.
    #[n(0)]
    Succeeded,
    /// The tool said that it could not.
    #[n(1)]
    Failed,
    /// It was not allowed to run.
    #[n(2)]
    Denied,
    /// It was stopped, or never got to run.
    #[n(3)]
    Interrupted,
}

/// Where something went wrong; decides whether it is tried again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FaultOrigin"))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The provider answered with an error.
    #[n(0)]
    Model,
    /// The provider could not be reached, or the line was cut.
    #[n(1)]
    Network,
    /// A tool, or the hook after the tools, broke down. What it did is not known: never tried again by itself.
    #[n(2)]
    Tool,
    /// What happened could not be written down. Nothing goes on before a person has looked.
    #[n(3)]
    Store,
    /// The request could not be made: no key, no such model. Trying again would fail again.
    #[n(4)]
    Setup,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A person sent a message. While a turn runs it steers that turn.
    Prompted,
    /// The first of an answer came in.
    AnswerBegan,
    /// The answer is complete.
    Answered {
        /// The calls that it makes: their names, which must differ, and their tools.
        calls: Vec<(String, String)>,
    },
    /// Something went wrong that is not a tool's own answer.
    Faulted {
        /// What went wrong.
        fault: Fault,
    },
    /// The pause before another attempt is over.
    RetryDue,
    /// A person has to be asked about a call.
    ToolAsked {
        /// Which call.
        call: String,
    },
    /// A call may run, and is to run now.
    ToolAllowed {
        /// Which call.
        call: String,
    },
    /// A call may not run.
    ToolDenied {
        /// Which call.
        call: String,
    },
    /// A running tool says how far it is. That changes no state.
    ToolProgress {
        /// Which call.
        call: String,
    },
    /// A running tool has ended.
    ToolEnded {
        /// Which call.
        call: String,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// What runs after the tools is done.
    HookDone,
    /// A person wants the turn to stop.
    Interrupted,
    /// The program starts with a state that another run of it saved, and that nobody works on any more.
    Resumed,
    /// The program is to end.
    ShutDown,
}

/// What the driver has to do, in order, once the state that came with it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bring in the messages that were queued, then ask the model.
    CallModel,
    /// Stop listening to the model. What it said so far is kept, marked as interrupted.
    StopModel,
    /// Find out whether a call may run: by the rules, or by asking.
    Decide {
        /// Which call.
        call: String,
    },
    /// Run a call.
    RunTool {
        /// Which call.
        call: String,
    },
    /// Stop a running call.
    StopTool {
        /// Which call.
        call: String,
    },
    /// Give a call the result that it was interrupted.
    CloseCall {
        /// Which call.
        call: String,
    },
    /// Do what is to be done after the tools of a round.
    RunHook,
    /// Come back with [`Event::RetryDue`] after a pause.
    Wait {
        /// How long.
        millis: u64,
    },
    /// The turn is over, or stands still: say so, and let others have the take.
    EndTurn {
        /// How it ended.
        how: Ended,
    },
    /// Leave.
    Quit,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The model has said all it had to say.
    Completed,
    /// A person stopped it.
    Interrupted,
    /// Something went wrong that a person has to look at; the turn can be resumed.
    Failed,
}

impl Agent {
    /// What a take keeps of an agent in that state: nothing, if the next move is a person's.
    pub fn kept(turn: TurnId, state: AgentState) -> Option<Self> {
        let idle = matches!(state, AgentState::Waiting | AgentState::ShuttingDown { unfinished: false });
        (!idle).then_some(Self { turn, state })
    }
}

impl AgentState {
    /// Whether something goes on: a call, a tool, or a pause before another attempt.
    pub fn is_running(&self) -> bool {
        match self {
            Self::Waiting | Self::ShuttingDown { .. } => false,
            Self::Failed { retry_in, .. } => retry_in.is_some(),
            Self::Calling { .. }
            | Self::Processing { .. }
            | Self::Executing { .. }
            | Self::PostTools { .. } => true,
        }
    }

    /// The calls of the round of tools that it is in.
    pub fn calls(&self) -> &[ToolRun] {
        match self {
            Self::Executing { calls } | Self::PostTools { calls } => calls,
            _ => &[],
        }
    }
}

impl ToolStatus {
    /// Whether it has a result.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Completed { .. })
    }
}
