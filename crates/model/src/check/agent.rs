//! Validation of a take's agent: its state must be reachable, and one that a take stores.

use std::collections::HashSet;

use super::{InvalidContentError, at_most};
use crate::agent::{Agent, AgentState, ToolRun};
use crate::limits::ENTRY_BYTES;

pub(super) fn agent(agent: &Agent) -> Result<(), InvalidContentError> {
    let good = match &agent.state {
        // An idle take stores no agent; otherwise the same take would have two encodings.
        AgentState::Waiting | AgentState::ShuttingDown { unfinished: false } => false,
        AgentState::ShuttingDown { unfinished: true } => true,
        AgentState::Calling { attempt, .. } | AgentState::Processing { attempt, .. } => *attempt > 0,
        AgentState::Failed { message, attempts, .. } => {
            at_most("bytes of a message", message.len(), ENTRY_BYTES)?;
            *attempts > 0
        }
        AgentState::Executing { calls } => {
            have_distinct_names(calls)? && calls.iter().any(|run| !run.status.is_completed())
        }
        AgentState::PostTools { calls } => {
            have_distinct_names(calls)? && calls.iter().all(|run| run.status.is_completed())
        }
    };
    if good { Ok(()) } else { Err(InvalidContentError::Agent) }
}

/// Whether there are calls, and their ids differ. One entry made all of them.
fn have_distinct_names(calls: &[ToolRun]) -> Result<bool, InvalidContentError> {
    let size = calls.iter().map(|run| run.call.len() + run.name.len()).sum();
    at_most("bytes of calls", size, ENTRY_BYTES)?;
    let names: HashSet<&str> = calls.iter().map(|run| run.call.as_str()).collect();
    Ok(!calls.is_empty() && names.len() == calls.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{FaultOrigin, ToolOutcome, ToolStatus};
    use crate::id::TurnId;

    #[test]
    fn only_reachable_states_pass() {
        let run = |call: &str, status| ToolRun { call: call.to_owned(), name: "read".to_owned(), status };
        let done = ToolStatus::Completed { outcome: ToolOutcome::Denied };
        let check = |state: AgentState, expected: bool| {
            let found = agent(&Agent { turn: TurnId::from_bytes([1; 16]), state: state.clone() });
            assert_eq!(found.is_ok(), expected, "{state:?}");
        };
        check(AgentState::Waiting, false);
        check(AgentState::ShuttingDown { unfinished: false }, false);
        check(AgentState::ShuttingDown { unfinished: true }, true);
        check(AgentState::Calling { attempt: 1, steered: true }, true);
        check(AgentState::Processing { attempt: 0, steered: false }, false);
        let failed = |attempts| AgentState::Failed {
            origin: FaultOrigin::Model,
            message: "no".to_owned(),
            attempts,
            retry_in: None,
        };
        check(failed(1), true);
        check(failed(0), false);
        check(AgentState::Executing { calls: vec![] }, false);
        check(AgentState::Executing { calls: vec![run("a", done)] }, false);
        check(AgentState::Executing { calls: vec![run("a", done), run("b", ToolStatus::Asking)] }, true);
        check(AgentState::Executing { calls: vec![run("a", done), run("a", ToolStatus::Asking)] }, false);
        check(AgentState::PostTools { calls: vec![run("a", done)] }, true);
        check(AgentState::PostTools { calls: vec![run("a", ToolStatus::Running)] }, false);
    }
}
