//! State transitions. An event that does not apply to a state leaves it unchanged.

use super::{
    Action, AgentState, Event, Fault, NamedCall, StepContext, ToolOutcome, ToolRun, ToolStatus, TurnEnd,
};

type Transition = (AgentState, Vec<Action>);

/// Maximum calls in a state. A state is written at each step, so its size must not depend on the number of
/// calls in an answer.
pub const BATCH: usize = 16;

/// Longer error messages are truncated.
const MESSAGE_BYTES: usize = 4_096;
const INTERRUPTED: ToolStatus = ToolStatus::Completed { outcome: ToolOutcome::Interrupted };

/// Returns the next state for an event, and the actions to run once that state is on disk.
pub fn step(state: &AgentState, event: Event, context: &StepContext<'_>) -> Transition {
    let stay = || (state.clone(), Vec::new());
    if let AgentState::ShuttingDown { unfinished } = state {
        return match event {
            Event::Resumed if *unfinished => call(1),
            Event::Resumed => (AgentState::Waiting, Vec::new()),
            Event::Interrupted if *unfinished => {
                (AgentState::Waiting, vec![Action::EndTurn { how: TurnEnd::Interrupted }])
            }
            _ => stay(),
        };
    }
    match event {
        Event::Prompted => prompted(state),
        Event::AnswerBegan => match state {
            AgentState::Calling { attempt, steered } => {
                (AgentState::Processing { attempt: *attempt, steered: *steered }, Vec::new())
            }
            _ => stay(),
        },
        Event::Answered { calls } => match state {
            AgentState::Calling { steered, .. } | AgentState::Processing { steered, .. } => {
                answered(&calls, *steered)
            }
            _ => stay(),
        },
        Event::MessagesAdded => match state {
            AgentState::Calling { attempt, .. } | AgentState::Processing { attempt, .. } => {
                (AgentState::Calling { attempt: *attempt, steered: false }, Vec::new())
            }
            _ => stay(),
        },
        Event::Faulted { fault } => faulted(state, fault, context),
        Event::RetryDue => match state {
            AgentState::Failed { attempts, retry_in: Some(_), .. } => call(attempts.saturating_add(1)),
            _ => stay(),
        },
        Event::ToolAsked { call } => {
            let pending = |status| matches!(status, ToolStatus::Pending);
            tool(state, &call, pending, ToolStatus::Asking, None, context)
        }
        Event::ToolAllowed { call } => {
            let run = Action::RunTool { call: call.clone() };
            tool(state, &call, undecided, ToolStatus::Running, Some(run), context)
        }
        Event::ToolDenied { call } => {
            let denied = ToolStatus::Completed { outcome: ToolOutcome::Denied };
            tool(state, &call, undecided, denied, None, context)
        }
        Event::ToolProgress { .. } | Event::HookStarted => stay(),
        Event::ToolEnded { call, outcome } => {
            let ended = ToolStatus::Completed { outcome };
            let running = |status| matches!(status, ToolStatus::Running);
            tool(state, &call, running, ended, None, context)
        }
        Event::HookEnded => match state {
            AgentState::PostTools { .. } => call(1),
            _ => stay(),
        },
        Event::Interrupted if *state == AgentState::Waiting => stay(),
        Event::Interrupted => {
            let mut actions = stop(state, context);
            actions.push(Action::EndTurn { how: TurnEnd::Interrupted });
            (AgentState::Waiting, actions)
        }
        Event::Resumed => resumed(state, context),
        Event::ShutDown => {
            let mut actions = stop(state, context);
            actions.push(Action::Quit);
            (AgentState::ShuttingDown { unfinished: *state != AgentState::Waiting }, actions)
        }
    }
}

fn call(attempt: u32) -> Transition {
    (AgentState::Calling { attempt, steered: false }, vec![Action::CallModel])
}

fn undecided(status: ToolStatus) -> bool {
    matches!(status, ToolStatus::Pending | ToolStatus::Asking)
}

fn prompted(state: &AgentState) -> Transition {
    match state {
        AgentState::Waiting | AgentState::Failed { .. } => call(1),
        AgentState::Calling { attempt, .. } => {
            (AgentState::Calling { attempt: *attempt, steered: true }, Vec::new())
        }
        AgentState::Processing { attempt, .. } => {
            (AgentState::Processing { attempt: *attempt, steered: true }, Vec::new())
        }
        // The model is called after these states anyway, with all messages queued until then.
        AgentState::Executing { .. } | AgentState::PostTools { .. } | AgentState::ShuttingDown { .. } => {
            (state.clone(), Vec::new())
        }
    }
}

fn answered(calls: &[NamedCall], steered: bool) -> Transition {
    if !calls.is_empty() {
        return begin_batch(calls);
    }
    if steered { call(1) } else { (AgentState::Waiting, vec![Action::EndTurn { how: TurnEnd::Completed }]) }
}

/// Starts the first calls of a list.
fn begin_batch(calls: &[NamedCall]) -> Transition {
    let mut runs: Vec<ToolRun> = Vec::with_capacity(calls.len().min(BATCH));
    for (call, name) in calls {
        // Two calls with one id would be ambiguous, so the second never runs.
        if runs.len() < BATCH && runs.iter().all(|run| run.call != *call) {
            runs.push(ToolRun { call: call.clone(), name: name.clone(), status: ToolStatus::Pending });
        }
    }
    let actions = runs.iter().map(|run| Action::Decide { call: run.call.clone() }).collect();
    (AgentState::Executing { calls: runs }, actions)
}

fn faulted(state: &AgentState, fault: Fault, context: &StepContext<'_>) -> Transition {
    let (attempts, retry_in) = match state {
        AgentState::Calling { attempt, .. } | AgentState::Processing { attempt, .. } => {
            (*attempt, context.retry_policy.pause(&fault, *attempt, context.jitter))
        }
        AgentState::Executing { .. } | AgentState::PostTools { .. } => (1, None),
        AgentState::Waiting | AgentState::Failed { .. } | AgentState::ShuttingDown { .. } => {
            return (state.clone(), Vec::new());
        }
    };
    // A failed request has already stopped; running tools have not.
    let mut actions = close(state, context);
    actions.push(match retry_in {
        Some(millis) => Action::Wait { millis },
        None => Action::EndTurn { how: TurnEnd::Failed },
    });
    let Fault { origin, mut message, .. } = fault;
    // Some providers return whole HTML pages, and every state stores this message.
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    (AgentState::Failed { origin, message, attempts, retry_in }, actions)
}

/// Moves one call to another status, if its current status allows that.
fn tool(
    state: &AgentState,
    call: &str,
    from: impl Fn(ToolStatus) -> bool,
    to: ToolStatus,
    action: Option<Action>,
    context: &StepContext<'_>,
) -> Transition {
    let AgentState::Executing { calls } = state else { return (state.clone(), Vec::new()) };
    let Some(index) = calls.iter().position(|run| run.call == call && from(run.status)) else {
        return (state.clone(), Vec::new());
    };
    let mut calls = calls.clone();
    calls[index].status = to;
    let (state, mut actions) = executing(calls, context);
    actions.splice(0..0, action);
    (state, actions)
}

/// The state after a call changed: the same batch, the next one, the hook, or the next request.
fn executing(calls: Vec<ToolRun>, context: &StepContext<'_>) -> Transition {
    if calls.iter().any(|run| !run.status.is_completed()) {
        return (AgentState::Executing { calls }, Vec::new());
    }
    if !context.later.is_empty() {
        return begin_batch(context.later);
    }
    if context.hook { (AgentState::PostTools { calls }, vec![Action::RunHook]) } else { call(1) }
}

/// Returns the actions that stop and close everything when a turn stops.
fn stop(state: &AgentState, context: &StepContext<'_>) -> Vec<Action> {
    match state {
        AgentState::Calling { .. } | AgentState::Processing { .. } => vec![Action::StopModel],
        AgentState::PostTools { .. } => vec![Action::CloseHook],
        _ => close(state, context),
    }
}

/// Closes the calls without a result, including those that are not in the state yet.
fn close(state: &AgentState, context: &StepContext<'_>) -> Vec<Action> {
    let AgentState::Executing { calls } = state else { return Vec::new() };
    let mut actions = Vec::new();
    for run in calls.iter().filter(|run| !run.status.is_completed()) {
        if run.status == ToolStatus::Running {
            actions.push(Action::StopTool { call: run.call.clone() });
        }
        actions.push(Action::CloseCall { call: run.call.clone() });
    }
    actions.extend(context.later.iter().map(|(call, _)| Action::CloseCall { call: call.clone() }));
    actions
}

fn resumed(state: &AgentState, context: &StepContext<'_>) -> Transition {
    match state {
        AgentState::Waiting | AgentState::ShuttingDown { .. } => (state.clone(), Vec::new()),
        AgentState::Calling { .. } | AgentState::Processing { .. } | AgentState::Failed { .. } => call(1),
        // The hook may have run: the model learns that it was interrupted.
        AgentState::PostTools { .. } => {
            let (state, after) = call(1);
            (state, [vec![Action::CloseHook], after].concat())
        }
        AgentState::Executing { calls } => {
            let mut actions = Vec::new();
            let mut calls = calls.clone();
            for run in &mut calls {
                let call = run.call.clone();
                match run.status {
                    ToolStatus::Running => {
                        run.status = INTERRUPTED;
                        actions.push(Action::CloseCall { call });
                    }
                    ToolStatus::Pending | ToolStatus::Asking => {
                        run.status = ToolStatus::Pending;
                        actions.push(Action::Decide { call });
                    }
                    ToolStatus::Completed { .. } => {}
                }
            }
            let (state, after) = executing(calls, context);
            actions.extend(after);
            (state, actions)
        }
    }
}
