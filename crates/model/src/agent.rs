//! The agent's state machine: a pure function from a state and an event to the next state and its actions.
//!
//! ```text
//!              Prompted                 Answered (no calls): the turn ends
//!   Waiting ─────────────► Calling ◄──────────────────────────────┐
//!      ▲                    │    ▲ ▲                              │ HookEnded
//!      │ Interrupted        │    │ └── RetryDue, Resumed ── Failed│
//!      │ (from anywhere)    ▼    │                         ▲      │
//!      └──────────── Processing ─┼── Faulted ──────────────┘      │
//!                           │    │                                │
//!                           │ Answered (with calls)               │
//!                           ▼    │  all completed, with a hook    │
//!                        Executing ─────────────────────────► PostTools
//!                                │
//!                                └── all completed, without a hook
//! ```
//!
//! The state is part of the take's state, so a turn can resume from any saved version. The driver must
//! follow one rule: **the new state is on disk before its actions run**. A tool is therefore recorded as
//! running before it runs, and a crash leaves "interrupted", never a silent second run.
//!
//! Design decisions:
//!
//! - *A message during a turn* is the same event as a prompt. The state records it only while an answer
//!   streams in, because an answer without calls would otherwise end the turn. [`Action::CallModel`] always
//!   adds the queued messages first.
//! - *A tool goes from pending to running to completed*. Only a call that never ran (denied, interrupted)
//!   skips the middle. `RunTool` occurs once per call, across all crashes: on resume a running call is
//!   closed as interrupted, and a pending one is decided on again, because its approval may no longer
//!   apply.
//! - *The hook after the tools never runs twice* for one round. `PostTools` is on disk before the hook
//!   starts, so on resume it may have run: it is closed as interrupted, like a tool, and the model is called.
//!   The next round that changes files runs it again.
//! - *A state has one batch of calls.* [`StepContext::later`] has the remaining calls of the answer, which
//!   the conversation stores; each step that completes a batch starts the next one.
//! - *A call is closed in the same operation as the state change* where possible. If a crash comes between
//!   the two, the call has no result, and [`crate::projection`] reports it to the model as interrupted.
//! - *Shutting down closes open calls* and records that the turn is unfinished. Resuming calls the model,
//!   which sees the interrupted calls. The user can also end such a turn.

mod retry;
mod step;
#[cfg(test)]
mod tests;

use minicbor::{Decode, Encode};
use serde::Serialize;

pub use retry::{Fault, RetryPolicy};
pub use step::{BATCH, step};

use crate::id::TurnId;

/// The state of a take's agent. An idle take, with neither a running nor a failed turn, stores none.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// The current turn.
    #[n(0)]
    pub turn: TurnId,
    /// The progress of that turn.
    #[n(1)]
    #[serde(flatten)]
    pub state: AgentState,
}

/// The progress of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AgentState {
    /// Idle: waits for the user.
    #[n(0)]
    Waiting,
    /// The request was sent; no answer has arrived yet.
    #[n(1)]
    Calling {
        /// The number of this attempt, from 1.
        #[n(0)]
        attempt: u32,
        /// Whether the user sent a message after the request.
        #[n(1)]
        steered: bool,
    },
    /// The answer is streaming in.
    #[n(2)]
    Processing {
        /// The number of this attempt, from 1.
        #[n(0)]
        attempt: u32,
        /// Whether the user sent a message after the request.
        #[n(1)]
        steered: bool,
    },
    /// The requested tools wait for approval or run.
    #[n(3)]
    Executing {
        /// The calls of this round, in the model's order.
        #[n(0)]
        calls: Vec<ToolRun>,
    },
    /// All tools have completed, and the hook runs; the model has not received the results yet.
    #[n(4)]
    PostTools {
        /// The calls of this round, all completed.
        #[n(0)]
        calls: Vec<ToolRun>,
    },
    /// The turn failed.
    #[n(5)]
    Failed {
        /// The source of the fault.
        #[n(0)]
        origin: FaultOrigin,
        /// The error message for the user.
        #[n(1)]
        message: String,
        /// The number of attempts made.
        #[n(2)]
        attempts: u32,
        /// Milliseconds until the automatic retry; `None` if the user has to decide.
        #[n(3)]
        retry_in: Option<u64>,
    },
    /// The process is exiting.
    #[n(6)]
    ShuttingDown {
        /// Whether an unfinished turn can be resumed.
        #[n(0)]
        unfinished: bool,
    },
}

/// The name of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentStateKind {
    /// Waits for the user.
    Waiting,
    /// Calls the model.
    Calling,
    /// Receives the answer.
    Processing,
    /// Runs tools.
    Executing,
    /// Runs the hook after the tools.
    PostTools,
    /// Failed, or waits for a retry.
    Failed,
    /// Exits.
    ShuttingDown,
}

/// A tool call and its status.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRun {
    /// The call's id, as in its entry.
    #[n(0)]
    pub call: String,
    /// The tool's name.
    #[n(1)]
    pub name: String,
    /// The call's status.
    #[n(2)]
    #[serde(flatten)]
    pub status: ToolStatus,
}

/// The status of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolStatus {
    /// No decision yet.
    #[n(0)]
    Pending,
    /// Waits for the user's approval.
    #[n(1)]
    Asking,
    /// Runs, or ran when the process crashed.
    #[n(2)]
    Running,
    /// Has a result.
    #[n(3)]
    Completed {
        /// The outcome.
        #[n(0)]
        outcome: ToolOutcome,
    },
}

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool succeeded.
    #[n(0)]
    Succeeded,
    /// The tool reported an error.
    #[n(1)]
    Failed,
    /// The user or a rule denied the call.
    #[n(2)]
    Denied,
    /// The call was stopped, or never ran.
    #[n(3)]
    Interrupted,
}

/// The source of a fault; decides whether it is retried automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FaultOrigin"))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum FaultOrigin {
    /// The provider returned an error.
    #[n(0)]
    Model,
    /// The provider was unreachable, or the connection broke.
    #[n(1)]
    Network,
    /// A tool, or the hook after the tools, crashed. Its effects are unknown, so it is never retried
    /// automatically.
    #[n(2)]
    Tool,
    /// The store could not record the change. The turn stops until the user resumes it.
    #[n(3)]
    Store,
    /// The request could not be built, for example without a key or with an unknown model. A retry would
    /// fail again.
    #[n(4)]
    Setup,
}

/// The id of a call and the name of its tool.
pub type NamedCall = (String, String);

/// Facts besides the state and the event that a transition depends on.
#[derive(Clone, Copy, Debug)]
pub struct StepContext<'a> {
    /// Limits and delays for retries.
    pub retry_policy: &'a RetryPolicy,
    /// Any number; it spreads the delays between attempts.
    pub jitter: u64,
    /// The calls of the last answer that are not in the state yet; their ids must differ.
    pub later: &'a [NamedCall],
    /// Whether a hook has to run after this round of tools.
    pub hook: bool,
}

/// An input of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The user sent a message. During a turn it steers that turn.
    Prompted,
    /// The answer started.
    AnswerBegan,
    /// The answer is complete.
    Answered {
        /// Its calls. The first [`BATCH`] start; the driver passes the rest as [`StepContext::later`].
        calls: Vec<NamedCall>,
    },
    /// Queued messages were added to the conversation before a request.
    MessagesAdded,
    /// Something other than a tool's own result failed.
    Faulted {
        /// The fault.
        fault: Fault,
    },
    /// The delay before the next attempt has passed.
    RetryDue,
    /// A call needs the user's approval.
    ToolAsked {
        /// The call's id.
        call: String,
    },
    /// A call is approved and runs now.
    ToolAllowed {
        /// The call's id.
        call: String,
    },
    /// A call is denied.
    ToolDenied {
        /// The call's id.
        call: String,
    },
    /// A running tool reported progress. The state does not change.
    ToolProgress {
        /// The call's id.
        call: String,
    },
    /// A running tool has ended.
    ToolEnded {
        /// The call's id.
        call: String,
        /// Its outcome.
        outcome: ToolOutcome,
    },
    /// The hook after the tools starts. The state does not change.
    HookStarted,
    /// The hook after the tools has ended.
    HookEnded,
    /// The user interrupted the turn.
    Interrupted,
    /// The process loaded a state that an earlier process saved and no longer works on.
    Resumed,
    /// The process has to exit.
    ShutDown,
}

/// An action for the driver. Actions run in order, after their state is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add the queued messages, then call the model.
    CallModel,
    /// Cancel the request. The partial answer stays, marked as interrupted.
    StopModel,
    /// Decide whether a call may run: by the rules, or by asking the user.
    Decide {
        /// The call's id.
        call: String,
    },
    /// Run a call.
    RunTool {
        /// The call's id.
        call: String,
    },
    /// Stop a running call.
    StopTool {
        /// The call's id.
        call: String,
    },
    /// Record the result "interrupted" for a call.
    CloseCall {
        /// The call's id.
        call: String,
    },
    /// Run the hook after a round of tools.
    RunHook,
    /// Record that the hook was interrupted.
    CloseHook,
    /// Send [`Event::RetryDue`] after a delay.
    Wait {
        /// The delay in milliseconds.
        millis: u64,
    },
    /// The turn has ended or paused: report it and release the take.
    EndTurn {
        /// How the turn ended.
        how: TurnEnd,
    },
    /// Exit.
    Quit,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model finished its answer.
    Completed,
    /// The user interrupted it.
    Interrupted,
    /// A fault needs the user's attention; the turn can be resumed.
    Failed,
    /// The process exits; the turn can be resumed.
    ShutDown,
}

impl Agent {
    /// The agent that a take stores for that state; `None` while idle.
    pub fn unless_idle(turn: TurnId, state: AgentState) -> Option<Self> {
        let idle = matches!(state, AgentState::Waiting | AgentState::ShuttingDown { unfinished: false });
        (!idle).then_some(Self { turn, state })
    }
}

impl AgentState {
    /// The state at the start of a turn.
    pub fn prompted() -> Self {
        let retry_policy = RetryPolicy::default();
        let context = StepContext { retry_policy: &retry_policy, jitter: 0, later: &[], hook: false };
        step(&Self::Waiting, Event::Prompted, &context).0
    }

    /// Whether a model call, a tool or a retry delay is in progress.
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

    /// The name of the state.
    pub fn kind(&self) -> AgentStateKind {
        match self {
            Self::Waiting => AgentStateKind::Waiting,
            Self::Calling { .. } => AgentStateKind::Calling,
            Self::Processing { .. } => AgentStateKind::Processing,
            Self::Executing { .. } => AgentStateKind::Executing,
            Self::PostTools { .. } => AgentStateKind::PostTools,
            Self::Failed { .. } => AgentStateKind::Failed,
            Self::ShuttingDown { .. } => AgentStateKind::ShuttingDown,
        }
    }

    /// Whether the model was called and has not answered yet.
    pub fn is_answering(&self) -> bool {
        matches!(self, Self::Calling { .. } | Self::Processing { .. })
    }

    /// Whether an answer is arriving.
    pub fn is_processing(&self) -> bool {
        matches!(self, Self::Processing { .. })
    }

    /// The calls of the current round of tools.
    pub fn calls(&self) -> &[ToolRun] {
        match self {
            Self::Executing { calls } | Self::PostTools { calls } => calls,
            _ => &[],
        }
    }
}

impl AgentStateKind {
    /// The name in words, for display.
    pub fn label(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Calling => "calling the model",
            Self::Processing => "receiving the answer",
            Self::Executing => "running tools",
            Self::PostTools => "running the hook after tools",
            Self::Failed => "failed",
            Self::ShuttingDown => "shutting down",
        }
    }
}

impl ToolStatus {
    /// Whether the call has a result.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Completed { .. })
    }
}
