//! The state of a turn, which only [`retake_model::agent::step`] changes, and the actions that it requested.

use std::collections::VecDeque;

use retake_model::agent::{Action, AgentState, Event, StepContext, step};

/// The state machine of a turn.
pub(super) struct Machine {
    state: AgentState,
    queue: VecDeque<Action>,
    /// The error message of the last attempt, if it failed.
    failure: Option<String>,
}

/// A transition that is not on disk yet.
#[must_use]
pub(super) struct Transition {
    pub(super) state: AgentState,
    pub(super) actions: Vec<Action>,
    /// Whether queued actions no longer apply.
    replaces_queue: bool,
}

impl Machine {
    /// Starts with a state from the log.
    pub(super) fn new(state: AgentState) -> Self {
        Self { state, queue: VecDeque::new(), failure: None }
    }

    pub(super) fn state(&self) -> &AgentState {
        &self.state
    }

    /// The error message of the last attempt, if it failed.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The number of the current attempt.
    pub(super) fn attempt(&self) -> u32 {
        match self.state {
            AgentState::Calling { attempt, .. } | AgentState::Processing { attempt, .. } => attempt,
            _ => 1,
        }
    }

    /// The transition for an event. It takes effect when it is accepted.
    pub(super) fn propose(&self, event: Event, context: &StepContext<'_>) -> Transition {
        let replaces_queue =
            matches!(event, Event::Interrupted | Event::ShutDown | Event::Faulted { .. } | Event::Resumed);
        let (state, actions) = step(&self.state, event, context);
        Transition { state, actions, replaces_queue }
    }

    /// Makes a transition current, once it is on disk. A transition without actions need not be there: if the
    /// process dies, the turn resumes from the state before it.
    pub(super) fn accept(&mut self, transition: Transition) {
        let Transition { state, actions, replaces_queue } = transition;
        match &state {
            AgentState::Failed { message, .. } => self.failure = Some(message.clone()),
            AgentState::Calling { .. } => self.failure = None,
            _ => {}
        }
        self.state = state;
        if replaces_queue {
            self.queue.clear();
        }
        // New actions come before queued ones: a call runs before the next one is decided.
        for action in actions.into_iter().rev() {
            self.queue.push_front(action);
        }
    }

    pub(super) fn next_action(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }
}
