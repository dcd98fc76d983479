//! Finds the calls of an answer by id, and closes calls that do not run.

use retake_model::agent::{Event, Fault, FaultOrigin, ToolOutcome, ToolStatus};
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::ThreadId;
use retake_model::operation::{Actor, TurnStep};
use retake_model::take::Take;
use retake_timeline::{ReadError, Reader};

use super::driver::Driver;
use super::event::TurnEvent;
use super::{TurnError, entries};
use crate::approval::{self, ApprovalQuestion};
use crate::provider::broken_input;
use crate::tools::Call;

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PendingApproval"))]
pub struct PendingApproval {
    /// The id of the call.
    pub call: String,
    /// The question to the user.
    #[serde(flatten)]
    pub question: ApprovalQuestion,
}

/// The calls of a take that wait for approval, whichever process runs the turn.
pub fn pending_approvals(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
) -> Result<Vec<PendingApproval>, ReadError> {
    let Some(agent) = &take.agent else { return Ok(Vec::new()) };
    let mut pending_approvals = Vec::new();
    for run in agent.state.calls().iter().filter(|run| run.status == ToolStatus::Asking) {
        // The answer may have been edited, so that the call is gone.
        let entry = find(reader, thread, take, &run.call)?;
        let named = |block: &Block| read(block).filter(|(call, _)| call.id == run.call);
        if let Some((call, _)) = entry.and_then(|entry| entry.blocks.iter().find_map(named)) {
            pending_approvals
                .push(PendingApproval { call: run.call.clone(), question: approval::describe(&call) });
        }
    }
    Ok(pending_approvals)
}

/// Entries read at a time.
const PAGE: u64 = 200;

impl Driver<'_> {
    pub(super) fn tool_of(&self, call: &str) -> String {
        let run = self.machine.state().calls().iter().find(|run| run.call == call);
        run.map(|run| run.name.clone()).unwrap_or_default()
    }

    /// Denies a call.
    pub(super) fn deny(&mut self, call: &str, why: String) -> Result<(), TurnError> {
        let tool = self.tool_of(call);
        let entry = entries::result(call, why.clone(), true, Fields::default(), self.runtime.timeline.now());
        let outcome = ToolOutcome::Denied;
        let turn_step = TurnStep::ToolEnded { call: call.to_owned(), tool: tool.clone(), outcome };
        self.advance(
            Event::ToolDenied { call: call.to_owned() },
            vec![entry.into()],
            turn_step,
            Actor::Human,
        )?;
        let event = TurnEvent::ToolEnded { call: call.to_owned(), tool, outcome, text: why, files: 0 };
        self.observer.on_event(&event);
        Ok(())
    }
}

/// A permanent fault: the call is no longer in the conversation.
pub(super) fn missing_call() -> Fault {
    Fault {
        origin: FaultOrigin::Tool,
        message: "the call is not in the conversation any more; the answer that made it was changed"
            .to_owned(),
        retryable: false,
        retry_after: None,
    }
}

/// Finds the answer that made a call: only results follow it.
pub(super) fn find(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    call: &str,
) -> Result<Option<EntryVersion>, ReadError> {
    let mut end = take.entries.len();
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        for view in reader.entries(thread, take).page(start..end)?.into_iter().rev() {
            let makes = |block: &Block| matches!(block, Block::ToolCall { call: id, .. } if id == call);
            if view.entry.blocks.iter().any(makes) {
                return Ok(Some(view.entry));
            }
        }
        end = start;
    }
    Ok(None)
}

/// Reads the call in a block, with the error if its input was cut off.
pub(super) fn read(block: &Block) -> Option<(Call, Option<String>)> {
    let Block::ToolCall { call, name, input, .. } = block else { return None };
    let input = serde_json::from_str(input.as_str()).unwrap_or_default();
    Some((Call { id: call.clone(), name: name.clone(), input }, broken_input(block)))
}
