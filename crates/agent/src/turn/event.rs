//! What a turn tells those who watch it.

use retake_model::agent::{Ended, ToolOutcome};
use retake_model::content::ContentId;
use retake_model::entry::Usage;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::Version;
use retake_model::turn::Letter;
use serde::Serialize;

use crate::approval::Question;

/// Something that happened in a turn. What `--json` prints, one line each.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The turn is on disk, and the model is being called.
    Started {
        /// The thread.
        thread: ThreadId,
        /// The take.
        take: TakeId,
        /// The turn.
        turn: TurnId,
        /// Who answers.
        provider: String,
        /// Which model.
        model: String,
        /// The operation that the turn begins with, or goes on with.
        operation: Option<ContentId>,
        /// The thread's version now.
        version: Version,
    },
    /// Something that the user should know before the model is called.
    Notice {
        /// What.
        message: String,
    },
    /// The model is being called.
    Calling {
        /// Which attempt it is.
        attempt: u32,
        /// About how many tokens it is given.
        tokens: u64,
    },
    /// More text arrived.
    Text {
        /// The piece.
        text: String,
    },
    /// More of what the model thinks arrived.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The model begins to write a tool call.
    CallBegan {
        /// Which call.
        call: String,
        /// Which tool.
        tool: String,
    },
    /// The answer is complete and on disk.
    Answered {
        /// The entry.
        entry: EntryId,
        /// Tokens, as the provider counted them.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// What it cost, in millionths of a dollar; not said where the price is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        micro_dollars: Option<u64>,
        /// Why the model stopped, where that is not as usual.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<String>,
        /// What that means: the provider's reason, or the limit that cut the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_detail: Option<String>,
    },
    /// Someone has to decide whether a tool may run.
    ApprovalRequested {
        /// Which call.
        call: String,
        /// What about.
        #[serde(flatten)]
        question: Question,
    },
    /// A tool runs.
    ToolRuns {
        /// Which call.
        call: String,
        /// Which tool.
        tool: String,
        /// What it does, on one line.
        what: String,
    },
    /// A running tool wrote something, or reports how far it is.
    ToolProgress {
        /// Which call.
        call: String,
        /// How far it is, between 0 and 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
        /// What it is doing.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// How many units it has processed.
        #[serde(skip_serializing_if = "Option::is_none")]
        units_processed: Option<u64>,
        /// What a unit is, in the plural, such as `files`.
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
        /// What it wrote since the last event.
        text: String,
        /// How many bytes it wrote after that and before the next event, beyond what one event shows. The trace has
        /// the output as far as it is kept.
        #[serde(skip_serializing_if = "is_zero")]
        omitted_bytes: u64,
    },
    /// A tool has ended.
    ToolEnded {
        /// Which call.
        call: String,
        /// Which tool.
        tool: String,
        /// What came of it.
        outcome: ToolOutcome,
        /// What the model is told.
        text: String,
        /// How many files it changed.
        files: u64,
    },
    /// Something went wrong, and is tried again.
    Retrying {
        /// What went wrong.
        message: String,
        /// After how many milliseconds.
        millis: u64,
        /// Which attempt failed.
        attempt: u32,
    },
    /// A message from a person reached the turn.
    Steered {
        /// The entry that it became.
        entry: EntryId,
    },
    /// The conversation was compressed to fit into the model.
    Compressed {
        /// How many entries the summary stands for.
        removed: u64,
    },
    /// The turn is over.
    Ended {
        /// How it ended.
        how: Ended,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The thread's version now.
        version: Version,
        /// What the whole turn cost, in millionths of a dollar, as far as prices are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        micro_dollars: Option<u64>,
        /// Tokens of the whole turn.
        usage: Usage,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a person, or a program in its place, decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether it may run.
    pub allowed: bool,
    /// Whether the same call need not be asked about again in this project.
    pub remember: bool,
    /// What the model is told where it may not.
    pub reason: Option<String>,
}

impl Reply {
    /// The letter that brings it to a turn.
    pub(super) fn letter(&self, call: &str) -> Letter {
        let Self { allowed, remember, reason } = self.clone();
        Letter::Decide { call: call.to_owned(), allowed, remember, reason }
    }
}

/// Who watches a turn, and is asked.
pub trait Audience {
    /// Something happened.
    fn hear(&mut self, event: &TurnEvent);

    /// Whether a call may run; `None` if nobody is there to say so, and the answer comes by letter.
    /// `ended` says whether nothing need be asked any more, because the turn is to end or somebody has decided
    /// elsewhere; who waits for a person asks it now and then.
    fn ask(&mut self, question: &Question, ended: &dyn Fn() -> bool) -> Option<Reply> {
        let _ = (question, ended);
        None
    }
}
