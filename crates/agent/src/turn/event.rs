//! Events of a turn, and its observer.

use retake_model::agent::{AgentStateKind, ToolOutcome, TurnEnd};
use retake_model::content::ContentId;
use retake_model::entry::Usage;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::Version;
use retake_model::turn::TurnMessage;
use serde::Serialize;

use crate::approval::ApprovalQuestion;
use crate::cancel::Cancel;

/// An event of a turn. `--json` prints one per line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The turn is on disk.
    Started {
        /// The thread.
        thread: ThreadId,
        /// The take.
        take: TakeId,
        /// The turn.
        turn: TurnId,
        /// Provider.
        provider: String,
        /// Model.
        model: String,
        /// The operation that started or resumed the turn.
        operation: Option<ContentId>,
        /// Version of the thread.
        version: Version,
    },
    /// Something that the user should know before the model is called.
    Notice {
        /// What.
        message: String,
    },
    /// The model is being called.
    Calling {
        /// Number of the attempt.
        attempt: u32,
        /// Estimated input tokens.
        tokens: u64,
    },
    /// More text arrived.
    Text {
        /// The new text.
        text: String,
    },
    /// More thinking arrived.
    Thinking {
        /// The new text.
        text: String,
    },
    /// The model starts to write a tool call.
    CallStarted {
        /// Id of the call.
        call: String,
        /// Name of the tool.
        tool: String,
    },
    /// The answer is complete and on disk.
    Answered {
        /// The entry.
        entry: EntryId,
        /// Tokens, as the provider counted them.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Cost in millionths of a dollar, if the price is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        micro_dollars: Option<u64>,
        /// Stop reason, if unusual.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<String>,
        /// What that means: the provider's reason, or the limit that cut the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_detail: Option<String>,
    },
    /// A tool call waits for approval.
    ApprovalRequested {
        /// Id of the call.
        call: String,
        /// The question.
        #[serde(flatten)]
        question: ApprovalQuestion,
    },
    /// A tool starts.
    ToolStarted {
        /// Id of the call.
        call: String,
        /// Name of the tool.
        tool: String,
        /// The call on one line.
        what: String,
    },
    /// A running tool wrote output or reports progress.
    ToolProgress {
        /// Id of the call.
        call: String,
        /// Completed fraction between 0 and 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
        /// Current activity.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// Number of processed units.
        #[serde(skip_serializing_if = "Option::is_none")]
        units_processed: Option<u64>,
        /// Name of the unit in plural, such as `files`.
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
        /// Output since the last event.
        text: String,
        /// Bytes of output after `text` that exceed the size of an event. The trace has the stored output.
        #[serde(skip_serializing_if = "is_zero")]
        omitted_bytes: u64,
    },
    /// A tool has ended.
    ToolEnded {
        /// Id of the call.
        call: String,
        /// Name of the tool.
        tool: String,
        /// Its outcome.
        outcome: ToolOutcome,
        /// Its result for the model.
        text: String,
        /// Number of changed files.
        files: u64,
    },
    /// The state of the agent changed.
    State {
        /// The new state.
        state: AgentStateKind,
    },
    /// The hook after the tools starts.
    HookStarted {
        /// Its command.
        command: String,
    },
    /// The hook wrote output.
    HookProgress {
        /// Output since the last event.
        text: String,
        /// Bytes of output after `text` that exceed the size of an event. The trace has the stored output.
        #[serde(skip_serializing_if = "is_zero")]
        omitted_bytes: u64,
    },
    /// The hook has ended.
    HookEnded {
        /// Its outcome.
        outcome: ToolOutcome,
        /// Its output for the model.
        text: String,
        /// Number of changed files.
        files: u64,
    },
    /// A request failed and will be retried.
    Retrying {
        /// Error message.
        message: String,
        /// Delay in milliseconds.
        millis: u64,
        /// Number of the failed attempt.
        attempt: u32,
    },
    /// The turn received a steering message.
    Steered {
        /// The entry that it became.
        entry: EntryId,
    },
    /// The conversation was compressed to fit into the context window.
    Compressed {
        /// Number of entries that the summary replaces.
        removed: u64,
    },
    /// The turn has ended.
    Ended {
        /// How it ended.
        how: TurnEnd,
        /// Error message.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Version of the thread.
        version: Version,
        /// Cost of the turn in millionths of a dollar, as far as prices are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        micro_dollars: Option<u64>,
        /// Tokens of the turn.
        usage: Usage,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The decision of the user, or of a program, about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether it may run.
    pub allowed: bool,
    /// Whether to always allow this exact call in this project.
    pub remember: bool,
    /// Reason for the model, if denied.
    pub reason: Option<String>,
}

impl Reply {
    /// The message that delivers it to a turn.
    pub(super) fn message(&self, call: &str) -> TurnMessage {
        let Self { allowed, remember, reason } = self.clone();
        TurnMessage::Decide { call: call.to_owned(), allowed, remember, reason }
    }
}

/// Observes a turn and answers approval questions.
pub trait TurnObserver {
    /// Receives an event.
    fn on_event(&mut self, event: &TurnEvent);

    /// Decides whether a call may run; `None` if the decision will come as a message. `settled` is set when
    /// the turn is interrupted or the call is decided elsewhere: stop asking the user then.
    fn ask(&mut self, question: &ApprovalQuestion, settled: &Cancel) -> Option<Reply> {
        let _ = (question, settled);
        None
    }
}
