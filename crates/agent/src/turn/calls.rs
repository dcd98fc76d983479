//! The calls of an answer: found again by their names, and closed where they do not run.

use retake_model::agent::{Event, Fault, Origin, ToolOutcome, ToolStatus};
use retake_model::entry::{Block, Fields};
use retake_model::id::ThreadId;
use retake_model::operation::{Actor, TurnStep};
use retake_model::take::Take;
use retake_timeline::{LookError, Looking};

use super::driver::Driver;
use super::event::TurnEvent;
use super::{TurnError, entries};
use crate::approval::{self, Question};
use crate::provider::broken_input;
use crate::tools::Call;

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AskedCall"))]
pub struct Asked {
    /// Which call.
    pub call: String,
    /// What about.
    #[serde(flatten)]
    pub question: Question,
}

/// The calls of a take that wait for a person, in whatever process its turn runs.
pub fn asked(looking: &Looking<'_>, thread: ThreadId, take: &Take) -> Result<Vec<Asked>, LookError> {
    let Some(agent) = &take.agent else { return Ok(Vec::new()) };
    let mut asked = Vec::new();
    for run in agent.state.calls().iter().filter(|run| run.status == ToolStatus::Asking) {
        // An answer that was edited meanwhile may have no such call any more.
        if let Some((call, _)) = find(looking, thread, take, &run.call)? {
            asked.push(Asked { call: run.call.clone(), question: approval::describe(&call) });
        }
    }
    Ok(asked)
}

/// How many entries are read at a time.
const PAGE: u64 = 200;

impl Driver<'_> {
    /// The tool and the input of a call, from the answer that made it; what is wrong with it, if its input was cut off.
    pub(super) fn call_of(&self, call: &str) -> Result<Option<(Call, Option<String>)>, TurnError> {
        let looking = self.shop.timeline.look()?;
        let state = looking.state(self.thread)?;
        let take = state.take(&looking.queries(), self.take)?.ok_or(TurnError::NoSuchTake)?;
        Ok(find(&looking, self.thread, &take, call)?)
    }

    pub(super) fn tool_of(&self, call: &str) -> String {
        let run = self.state.calls().iter().find(|run| run.call == call);
        run.map(|run| run.name.clone()).unwrap_or_default()
    }

    /// A fault of the store's own, which nothing goes on after.
    pub(super) fn missing_call() -> Fault {
        Fault {
            origin: Origin::Tool,
            message: "the call is not in the conversation any more; the answer that made it was changed"
                .to_owned(),
            retryable: false,
            retry_after: None,
        }
    }

    /// A call that does not run.
    pub(super) fn deny(&mut self, call: &str, why: String) -> Result<(), TurnError> {
        let tool = self.tool_of(call);
        let entry = entries::result(call, why.clone(), true, Fields::default(), self.shop.timeline.now());
        let outcome = ToolOutcome::Denied;
        let turn_step = TurnStep::ToolEnded { call: call.to_owned(), tool: tool.clone(), outcome };
        self.go(Event::ToolDenied { call: call.to_owned() }, vec![entry.into()], turn_step, Actor::Human)?;
        let event = TurnEvent::ToolEnded { call: call.to_owned(), tool, outcome, text: why, files: 0 };
        self.audience.hear(&event);
        Ok(())
    }
}

/// A call of the last answer, behind which there are only results of its other calls; what is wrong with it, if its
/// input was cut off.
fn find(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: &Take,
    call: &str,
) -> Result<Option<(Call, Option<String>)>, LookError> {
    let mut end = take.entries.len();
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        for view in looking.page(thread, take, start..end)?.iter().rev() {
            for block in &view.entry.blocks {
                if let Block::ToolCall { call: id, name, input, .. } = block
                    && id == call
                {
                    let input = serde_json::from_str(input.as_str()).unwrap_or_default();
                    let call = Call { id: id.clone(), name: name.clone(), input };
                    return Ok(Some((call, broken_input(block))));
                }
            }
        }
        end = start;
    }
    Ok(None)
}
