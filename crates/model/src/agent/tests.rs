//! Tests every state with every event, and the invariants of random event sequences.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const POLICY: RetryPolicy = RetryPolicy { max_attempts: 3, initial_delay: 1_000, max_delay: 8_000 };

fn run(call: &str, status: ToolStatus) -> ToolRun {
    ToolRun { call: call.to_owned(), name: "shell".to_owned(), status }
}

fn fault(origin: FaultOrigin) -> Fault {
    Fault { origin, message: "no".to_owned(), retryable: true, retry_after: None }
}

fn context(later: &[NamedCall], hook: bool, jitter: u64) -> StepContext<'_> {
    StepContext { retry_policy: &POLICY, jitter, later, hook }
}

const DONE: ToolStatus = ToolStatus::Completed { outcome: ToolOutcome::Succeeded };

/// One state of each kind, with its name in the table.
fn states() -> Vec<(&'static str, AgentState)> {
    let failed = |retry_in| AgentState::Failed {
        origin: FaultOrigin::Network,
        message: "no".to_owned(),
        attempts: 2,
        retry_in,
    };
    let one = |status| AgentState::Executing { calls: vec![run("a", status)] };
    vec![
        ("waiting", AgentState::Waiting),
        ("calling", AgentState::Calling { attempt: 2, steered: false }),
        ("steered", AgentState::Calling { attempt: 2, steered: true }),
        ("processing", AgentState::Processing { attempt: 2, steered: false }),
        ("pending", one(ToolStatus::Pending)),
        ("asking", one(ToolStatus::Asking)),
        ("running", one(ToolStatus::Running)),
        (
            "mixed",
            AgentState::Executing {
                calls: vec![run("a", ToolStatus::Running), run("b", ToolStatus::Pending), run("c", DONE)],
            },
        ),
        ("post", AgentState::PostTools { calls: vec![run("a", DONE)] }),
        ("failed", failed(None)),
        ("retrying", failed(Some(5))),
        ("leaving", AgentState::ShuttingDown { unfinished: false }),
        ("leaving a turn", AgentState::ShuttingDown { unfinished: true }),
    ]
}

fn events() -> Vec<(&'static str, Event)> {
    let call = || "a".to_owned();
    vec![
        ("prompted", Event::Prompted),
        ("began", Event::AnswerBegan),
        ("answered", Event::Answered { calls: vec![] }),
        ("calls", Event::Answered { calls: vec![(call(), "shell".to_owned()), (call(), "read".to_owned())] }),
        ("network", Event::Faulted { fault: fault(FaultOrigin::Network) }),
        ("store", Event::Faulted { fault: fault(FaultOrigin::Store) }),
        ("due", Event::RetryDue),
        ("asked", Event::ToolAsked { call: call() }),
        ("allowed", Event::ToolAllowed { call: call() }),
        ("denied", Event::ToolDenied { call: call() }),
        ("progress", Event::ToolProgress { call: call() }),
        ("ended", Event::ToolEnded { call: call(), outcome: ToolOutcome::Failed }),
        ("hook started", Event::HookStarted),
        ("hook", Event::HookEnded),
        ("added", Event::MessagesAdded),
        ("interrupted", Event::Interrupted),
        ("resumed", Event::Resumed),
        ("shut down", Event::ShutDown),
    ]
}

fn shown(state: &AgentState) -> String {
    let status = |run: &ToolRun| match run.status {
        ToolStatus::Completed { outcome } => format!("{}={outcome:?}", run.call),
        other => format!("{}={other:?}", run.call),
    };
    let list = |calls: &[ToolRun]| calls.iter().map(status).collect::<Vec<_>>().join(" ");
    match state {
        AgentState::Waiting => "Waiting".to_owned(),
        AgentState::Calling { attempt, steered } => {
            format!("Calling {attempt}{}", if *steered { " steered" } else { "" })
        }
        AgentState::Processing { attempt, steered } => {
            format!("Processing {attempt}{}", if *steered { " steered" } else { "" })
        }
        AgentState::Executing { calls } => format!("Executing {}", list(calls)),
        AgentState::PostTools { calls } => format!("PostTools {}", list(calls)),
        AgentState::Failed { origin, attempts, retry_in, .. } => {
            format!("Failed {origin:?} {attempts} {}", if retry_in.is_some() { "retry" } else { "stop" })
        }
        AgentState::ShuttingDown { unfinished } => {
            format!("ShuttingDown{}", if *unfinished { " unfinished" } else { "" })
        }
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Decide { call } => format!("Decide {call}"),
        Action::RunTool { call } => format!("RunTool {call}"),
        Action::StopTool { call } => format!("StopTool {call}"),
        Action::CloseCall { call } => format!("CloseCall {call}"),
        Action::Wait { .. } => "Wait".to_owned(),
        Action::EndTurn { how } => format!("End {how:?}"),
        other => format!("{other:?}"),
    }
}

/// The transitions. Every other pair of a state and an event changes nothing.
const TABLE: &[(&str, &str, &str)] = &[
    ("waiting", "prompted", "Calling 1; CallModel"),
    ("waiting", "shut down", "ShuttingDown; Quit"),
    ("calling", "prompted", "Calling 2 steered"),
    ("calling", "began", "Processing 2"),
    ("calling", "answered", "Waiting; End Completed"),
    ("calling", "calls", "Executing a=Pending; Decide a"),
    ("calling", "network", "Failed Network 2 retry; Wait"),
    ("calling", "store", "Failed Store 2 stop; End Failed"),
    ("calling", "interrupted", "Waiting; StopModel, End Interrupted"),
    ("calling", "resumed", "Calling 1; CallModel"),
    ("calling", "shut down", "ShuttingDown unfinished; StopModel, Quit"),
    ("steered", "began", "Processing 2 steered"),
    ("steered", "added", "Calling 2"),
    ("steered", "answered", "Calling 1; CallModel"),
    ("steered", "calls", "Executing a=Pending; Decide a"),
    ("steered", "network", "Failed Network 2 retry; Wait"),
    ("steered", "store", "Failed Store 2 stop; End Failed"),
    ("steered", "interrupted", "Waiting; StopModel, End Interrupted"),
    ("steered", "resumed", "Calling 1; CallModel"),
    ("steered", "shut down", "ShuttingDown unfinished; StopModel, Quit"),
    ("processing", "prompted", "Processing 2 steered"),
    ("processing", "added", "Calling 2"),
    ("processing", "answered", "Waiting; End Completed"),
    ("processing", "calls", "Executing a=Pending; Decide a"),
    ("processing", "network", "Failed Network 2 retry; Wait"),
    ("processing", "store", "Failed Store 2 stop; End Failed"),
    ("processing", "interrupted", "Waiting; StopModel, End Interrupted"),
    ("processing", "resumed", "Calling 1; CallModel"),
    ("processing", "shut down", "ShuttingDown unfinished; StopModel, Quit"),
    ("pending", "network", "Failed Network 1 stop; CloseCall a, End Failed"),
    ("pending", "store", "Failed Store 1 stop; CloseCall a, End Failed"),
    ("pending", "asked", "Executing a=Asking"),
    ("pending", "allowed", "Executing a=Running; RunTool a"),
    ("pending", "denied", "PostTools a=Denied; RunHook"),
    ("pending", "interrupted", "Waiting; CloseCall a, End Interrupted"),
    ("pending", "resumed", "Executing a=Pending; Decide a"),
    ("pending", "shut down", "ShuttingDown unfinished; CloseCall a, Quit"),
    ("asking", "network", "Failed Network 1 stop; CloseCall a, End Failed"),
    ("asking", "store", "Failed Store 1 stop; CloseCall a, End Failed"),
    ("asking", "allowed", "Executing a=Running; RunTool a"),
    ("asking", "denied", "PostTools a=Denied; RunHook"),
    ("asking", "interrupted", "Waiting; CloseCall a, End Interrupted"),
    ("asking", "resumed", "Executing a=Pending; Decide a"),
    ("asking", "shut down", "ShuttingDown unfinished; CloseCall a, Quit"),
    ("running", "network", "Failed Network 1 stop; StopTool a, CloseCall a, End Failed"),
    ("running", "store", "Failed Store 1 stop; StopTool a, CloseCall a, End Failed"),
    ("running", "ended", "PostTools a=Failed; RunHook"),
    ("running", "interrupted", "Waiting; StopTool a, CloseCall a, End Interrupted"),
    ("running", "resumed", "PostTools a=Interrupted; CloseCall a, RunHook"),
    ("running", "shut down", "ShuttingDown unfinished; StopTool a, CloseCall a, Quit"),
    ("mixed", "network", "Failed Network 1 stop; StopTool a, CloseCall a, CloseCall b, End Failed"),
    ("mixed", "store", "Failed Store 1 stop; StopTool a, CloseCall a, CloseCall b, End Failed"),
    ("mixed", "ended", "Executing a=Failed b=Pending c=Succeeded"),
    ("mixed", "interrupted", "Waiting; StopTool a, CloseCall a, CloseCall b, End Interrupted"),
    ("mixed", "resumed", "Executing a=Interrupted b=Pending c=Succeeded; CloseCall a, Decide b"),
    ("mixed", "shut down", "ShuttingDown unfinished; StopTool a, CloseCall a, CloseCall b, Quit"),
    ("post", "network", "Failed Network 1 stop; End Failed"),
    ("post", "store", "Failed Store 1 stop; End Failed"),
    ("post", "hook", "Calling 1; CallModel"),
    ("post", "interrupted", "Waiting; CloseHook, End Interrupted"),
    ("post", "resumed", "Calling 1; CloseHook, CallModel"),
    ("post", "shut down", "ShuttingDown unfinished; CloseHook, Quit"),
    ("failed", "prompted", "Calling 1; CallModel"),
    ("failed", "interrupted", "Waiting; End Interrupted"),
    ("failed", "resumed", "Calling 1; CallModel"),
    ("failed", "shut down", "ShuttingDown unfinished; Quit"),
    ("retrying", "prompted", "Calling 1; CallModel"),
    ("retrying", "due", "Calling 3; CallModel"),
    ("retrying", "interrupted", "Waiting; End Interrupted"),
    ("retrying", "resumed", "Calling 1; CallModel"),
    ("retrying", "shut down", "ShuttingDown unfinished; Quit"),
    ("leaving", "resumed", "Waiting"),
    ("leaving a turn", "resumed", "Calling 1; CallModel"),
    ("leaving a turn", "interrupted", "Waiting; End Interrupted"),
];

#[test]
fn every_event_is_handled_in_every_state() {
    let mut expected: HashMap<(&str, &str), &str> =
        TABLE.iter().map(|(state, event, next)| ((*state, *event), *next)).collect();
    assert_eq!(expected.len(), TABLE.len(), "each pair once");
    for (name, state) in states() {
        for (event_name, event) in events() {
            let (next, actions) = step(&state, event, &context(&[], true, 7));
            let describe = actions.iter().map(describe).collect::<Vec<_>>().join(", ");
            let found =
                if describe.is_empty() { shown(&next) } else { format!("{}; {describe}", shown(&next)) };
            match expected.remove(&(name, event_name)) {
                Some(expected) => assert_eq!(found, expected, "{name} × {event_name}"),
                None => {
                    assert!(next == state && actions.is_empty(), "{name} × {event_name}: {found}");
                }
            }
        }
    }
    assert!(expected.is_empty(), "no such pair: {expected:?}");
}

fn any_event() -> impl Strategy<Value = Event> {
    let call = prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let calls = prop::collection::vec((call.clone(), Just("shell".to_owned())), 0..3);
    let outcome = prop::sample::select(vec![ToolOutcome::Succeeded, ToolOutcome::Failed]);
    let origin = prop::sample::select(vec![
        FaultOrigin::Model,
        FaultOrigin::Network,
        FaultOrigin::Tool,
        FaultOrigin::Store,
    ]);
    prop_oneof![
        2 => Just(Event::Prompted),
        1 => Just(Event::AnswerBegan),
        4 => calls.prop_map(|calls| Event::Answered { calls }),
        1 => origin.prop_map(|origin| Event::Faulted { fault: fault(origin) }),
        1 => Just(Event::RetryDue),
        1 => call.clone().prop_map(|call| Event::ToolAsked { call }),
        3 => call.clone().prop_map(|call| Event::ToolAllowed { call }),
        1 => call.clone().prop_map(|call| Event::ToolDenied { call }),
        1 => call.clone().prop_map(|call| Event::ToolProgress { call }),
        3 => (call, outcome).prop_map(|(call, outcome)| Event::ToolEnded { call, outcome }),
        1 => Just(Event::HookStarted),
        3 => Just(Event::HookEnded),
        1 => Just(Event::MessagesAdded),
        1 => Just(Event::Interrupted),
        1 => Just(Event::Resumed),
        1 => Just(Event::ShutDown),
    ]
}

/// The next event on the way to the end of a turn.
fn next_event_to_end(state: &AgentState) -> Option<Event> {
    Some(match state {
        AgentState::Waiting => return None,
        AgentState::Calling { .. } | AgentState::Processing { .. } => Event::Answered { calls: vec![] },
        AgentState::Executing { calls } => {
            let open = calls.iter().find(|run| !run.status.is_completed()).expect("one call is open");
            match open.status {
                ToolStatus::Running => {
                    Event::ToolEnded { call: open.call.clone(), outcome: ToolOutcome::Succeeded }
                }
                _ => Event::ToolDenied { call: open.call.clone() },
            }
        }
        AgentState::PostTools { .. } => Event::HookEnded,
        AgentState::Failed { .. } | AgentState::ShuttingDown { .. } => Event::Resumed,
    })
}

fn again(state: &AgentState) -> AgentState {
    let bytes = minicbor::to_vec(state).expect("encoding into memory cannot fail");
    minicbor::decode(&bytes).expect("the bytes were just encoded")
}

proptest! {
    #[test]
    fn every_path_of_the_state_machine_is_valid(
        events in prop::collection::vec((any_event(), any::<bool>(), 0..3_usize), 0..60),
        jitter: u64,
    ) {
        let mut state = AgentState::Waiting;
        // Calls of different rounds may share ids, so each round is checked separately.
        let mut ran: Vec<String> = Vec::new();
        let mut closed: Vec<String> = Vec::new();
        let mut later: Vec<NamedCall> = Vec::new();
        for (event, hook, more) in events {
            let context = context(&later, hook, jitter);
            let (next, actions) = step(&state, event.clone(), &context);
            prop_assert_eq!(step(&again(&state), event.clone(), &context), (next.clone(), actions.clone()));
            let answered = matches!(event, Event::Answered { .. });
            if answered && matches!(next, AgentState::Executing { .. }) && state.calls().is_empty() {
                ran.clear();
                closed.clear();
                later = (0..more).map(|number| (format!("later {number}"), "shell".to_owned())).collect();
            }
            for action in &actions {
                match action {
                    Action::RunTool { call } => {
                        prop_assert!(!ran.contains(call), "{} runs twice", call);
                        let on_disk = next.calls().iter().find(|run| run.call == *call);
                        prop_assert_eq!(on_disk.map(|run| run.status), Some(ToolStatus::Running));
                        ran.push(call.clone());
                    }
                    Action::CloseCall { call } => {
                        prop_assert!(!closed.contains(call), "{} is closed twice", call);
                        closed.push(call.clone());
                    }
                    _ => {}
                }
            }
            // No call is lost: an open call stays open, gets a result, or is being closed.
            let ended = match &event {
                Event::ToolEnded { call, .. } | Event::ToolDenied { call } => Some(call),
                _ => None,
            };
            for open in state.calls().iter().filter(|run| !run.status.is_completed()) {
                let kept = next.calls().iter().any(|run| run.call == open.call);
                let ends = kept || closed.contains(&open.call) || ended == Some(&open.call);
                prop_assert!(ends, "{:?} is forgotten", open);
            }
            for before in state.calls().iter().filter(|run| run.status.is_completed()) {
                let after = next.calls().iter().find(|run| run.call == before.call);
                prop_assert!(after.is_none_or(|after| after.status == before.status));
            }
            // All calls of an answer run or are closed before anything else happens.
            let starts = |call: &str| next.calls().iter().any(|run| run.call == call);
            later.retain(|(call, _)| !starts(call) && !closed.contains(call));
            prop_assert!(later.is_empty() || matches!(next, AgentState::Executing { .. }), "{:?}", next);
            prop_assert!(hook || !actions.contains(&Action::RunHook));
            // A running state was started by an action, or was already running.
            let still = next.is_running() && !state.is_running();
            prop_assert!(!still || !actions.is_empty());
            state = next;
        }
        let mut steps = 0;
        while let Some(event) = next_event_to_end(&state) {
            state = step(&state, event, &context(&[], true, jitter)).0;
            steps += 1;
            prop_assert!(steps < 20, "never ends: {:?}", state);
        }
    }
}

#[test]
fn calls_start_in_batches_and_the_model_follows_without_a_hook() {
    let named = |numbers: std::ops::Range<usize>| -> Vec<NamedCall> {
        numbers.map(|number| (number.to_string(), "shell".to_owned())).collect()
    };
    let calls = named(0..2 * BATCH);
    let calling = AgentState::Calling { attempt: 1, steered: false };
    let (mut state, actions) =
        step(&calling, Event::Answered { calls: calls.clone() }, &context(&[], true, 0));
    assert_eq!((state.calls().len(), actions.len()), (BATCH, BATCH));
    let denied = |number: usize| Event::ToolDenied { call: number.to_string() };
    for number in 0..BATCH {
        let (next, actions) = step(&state, denied(number), &context(&calls[BATCH..], true, 0));
        assert_eq!(actions.len(), if number + 1 == BATCH { BATCH } else { 0 });
        state = next;
    }
    assert_eq!(state.calls()[0].call, BATCH.to_string());
    let (_, stopped) = step(&state, Event::Interrupted, &context(&named(90..92), true, 0));
    assert_eq!(stopped.len(), BATCH + 3, "open and later calls are closed: {stopped:?}");
    for number in BATCH..2 * BATCH {
        state = step(&state, denied(number), &context(&[], false, 0)).0;
    }
    assert_eq!(state, calling);
}

#[test]
fn agent_state_serializes_to_json() {
    let state = AgentState::Executing { calls: vec![run("a", DONE)] };
    let agent = Agent::unless_idle(TurnId::from_bytes([0; 16]), state).expect("the state is not idle");
    let shown = serde_json::to_value(&agent).expect("agents serialize");
    assert_eq!(shown["state"], "executing");
    assert_eq!(shown["calls"][0]["outcome"], "succeeded");
    assert_eq!(Agent::unless_idle(TurnId::from_bytes([0; 16]), AgentState::Waiting), None);
}
