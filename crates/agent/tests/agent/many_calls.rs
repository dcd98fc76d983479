//! Answers with many calls: the limit applies, each call gets a result, and the cost per step does not grow.

use std::sync::{Arc, Mutex};

use retake_agent::{Cancel, ResumeRequest, TurnEvent};
use retake_model::agent::{ToolOutcome, TurnEnd};
use retake_model::entry::Block;
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

fn answer(count: usize) -> Vec<(String, serde_json::Value)> {
    (0..count).map(|number| (format!("c{number}"), json!({}))).collect()
}

fn world(count: usize, limit: usize) -> World {
    let named = answer(count);
    let made: Vec<_> = named.iter().map(|(id, input)| (id.as_str(), "list", input.clone())).collect();
    let mut world = World::new(vec![calls(&made), text("Done."), text("Done again.")]);
    world.runtime.calls = limit;
    world
}

/// The results in the conversation: the names of their calls, and whether they failed.
fn results(world: &World) -> Vec<(String, bool)> {
    let result = |block: &Block| match block {
        Block::ToolResult { call, failed, .. } => Some((call.clone(), *failed)),
        _ => None,
    };
    world
        .entries()
        .iter()
        .flat_map(|entry| entry.blocks.iter().filter_map(result).collect::<Vec<_>>())
        .collect()
}

#[test]
fn calls_over_the_limit_get_a_result_that_explains_it() {
    let world = world(70, 40);
    let (outcome, events) = world.run("go");
    assert_eq!(outcome.how, TurnEnd::Completed);
    let results = results(&world);
    assert_eq!(results.len(), 70, "each call has one result");
    assert_eq!(results.iter().filter(|(_, failed)| *failed).count(), 30);
    let text = world.entries().iter().find_map(|entry| match &entry.blocks[..] {
        [Block::ToolResult { call, text, .. }] if call == "c50" => Some(text.clone()),
        _ => None,
    });
    assert!(text.as_deref().is_some_and(|text| text.contains("at most 40")), "{text:?}");
    let denied =
        |event: &&TurnEvent| matches!(event, TurnEvent::ToolEnded { outcome: ToolOutcome::Denied, .. });
    assert_eq!(events.iter().filter(denied).count(), 20, "observers hear of the first of them");
    world.check_requests();
    world.check_rest();
    world.undo();
    assert_eq!(world.transcript(), Vec::<String>::new());
}

#[test]
fn the_state_of_a_turn_holds_few_calls_however_many_there_are() {
    let world = world(90, 100);
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let most = Arc::new(Mutex::new(0));
    let (seen, mut witness) = (Arc::clone(&most), RecordingObserver::default());
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, TurnEvent::ToolStarted { .. }) {
            let reader = timeline.read().expect("the store is readable");
            let state = reader.state(thread).expect("a state");
            let take = state.take(&reader.queries(), take).expect("a take").expect("it is there");
            let stored_calls = take.agent.expect("a turn runs").state.calls().len();
            let mut most = seen.lock().expect("one thread");
            *most = stored_calls.max(*most);
        }
    }));
    world.run_with("go", &Cancel::new(), &mut witness).expect("the turn runs");
    let most = *most.lock().expect("one thread");
    assert!((1..=16).contains(&most), "{most} calls are written with each step");
    assert_eq!(results(&world).iter().filter(|(_, failed)| !failed).count(), 90);
    world.check_requests();
    world.check_rest();
}

/// Panics or stops the turn when the given call runs.
fn breaks_off_at(call: &'static str, action: impl Fn() + Send + 'static) -> RecordingObserver {
    let mut witness = RecordingObserver::default();
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, TurnEvent::ToolStarted { call: runs, .. } if runs == call) {
            action();
        }
    }));
    witness
}

#[test]
fn pending_calls_run_when_a_turn_is_resumed() {
    let world = world(60, 100);
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut witness = breaks_off_at("c20", || panic!("dies here"));
        world.run_with("go", &Cancel::new(), &mut witness)
    }));
    assert!(died.is_err(), "the control: it died");
    let outcome = world
        .runtime
        .resume(
            world.thread,
            world.take(),
            ResumeRequest::default(),
            &Cancel::new(),
            &mut RecordingObserver::default(),
        )
        .expect("the turn resumes");
    assert_eq!(outcome.how, TurnEnd::Completed);
    let results = results(&world);
    assert_eq!(results.len(), 60, "each call has one result");
    let failed: Vec<&str> =
        results.iter().filter(|(_, failed)| *failed).map(|(call, _)| call.as_str()).collect();
    assert_eq!(failed, ["c20"], "the one that ran when it died");
    world.check_requests();
    world.check_rest();
}

#[test]
fn pending_calls_of_a_stopped_turn_get_a_result() {
    let world = world(60, 100);
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let mut witness = breaks_off_at("c20", move || stop.set());
    let outcome = world.run_with("go", &cancel, &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Interrupted);
    assert_eq!(results(&world).len(), 60, "each call has one result");
    world.run("and now?");
    world.check_requests();
    world.check_rest();
}
