//! Tools that print faster than their output is read: output is reported and bounded, and stopping works.

use std::time::{Duration, Instant};

use retake_agent::{Cancel, TurnEvent, TurnHandle};
use retake_model::agent::TurnEnd;
use retake_timeline::{Caller, Goal, MoveOptions, Scope, Unit};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

/// Prints a line every 10 ms, for a minute.
const NOISY: &str =
    "i=0; while [ $i -lt 6000 ]; do echo noise; sleep 0.01; i=$((i+1)); done; echo late > late.txt";

/// The goal is 200 ms for the tool. The machine may be busy, and ending a turn takes a snapshot and a sync.
const PROMPTLY: Duration = Duration::from_secs(5);

/// Runs a turn with a noisy tool, performs the action after a moment, and returns how long the turn ran after
/// it.
fn meanwhile(world: &World, action: impl FnOnce()) -> (Result<TurnEnd, String>, Duration) {
    let sender = TurnHandle::new(&world.runtime.timeline).expect("the runtime database opens");
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| world.run_with("go", &Cancel::new(), &mut RecordingObserver::default()));
        while !sender.is_running(world.take()).expect("it can be asked") {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_secs(1));
        let started = Instant::now();
        action();
        let ended = turn.join().expect("no panic");
        (ended.map(|outcome| outcome.how).map_err(|error| error.to_string()), started.elapsed())
    })
}

#[test]
fn a_noisy_tool_is_stopped_by_a_turn_message() {
    let world = World::new(vec![calls(&[("s", "shell", json!({ "command": NOISY }))])]);
    let (sender, take) =
        (TurnHandle::new(&world.runtime.timeline).expect("the runtime database opens"), world.take());
    let (ended, took) = meanwhile(&world, || sender.interrupt(take).expect("the turn is running"));
    assert_eq!(ended, Ok(TurnEnd::Interrupted));
    assert!(took < PROMPTLY, "{took:?}");
    assert_eq!(world.read("late.txt"), None);
    world.check_rest();
}

#[test]
fn a_noisy_tool_is_stopped_by_an_undo_of_its_turn() {
    let world = World::new(vec![calls(&[("s", "shell", json!({ "command": NOISY }))])]);
    let (working_copy, thread) =
        (world.runtime.working_copy.clone().expect("files are recorded"), world.thread);
    let (ended, took) = meanwhile(&world, || {
        // An undo that moves files is refused while a tool changes them.
        let move_options = MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() };
        working_copy.go(thread, Goal::Undo(Unit::Turn, 1), Caller::human(), move_options).expect("an undo");
    });
    assert!(ended.is_err(), "{ended:?}");
    assert!(took < PROMPTLY, "{took:?}");
}

#[test]
fn a_noisy_tool_is_stopped_while_its_reader_blocks() {
    let world = World::new(vec![calls(&[("s", "shell", json!({ "command": "yes" }))])]);
    let sender = TurnHandle::new(&world.runtime.timeline).expect("the runtime database opens");
    let (take, started) = (world.take(), Instant::now());
    let mut witness = RecordingObserver::default();
    let cancel = Cancel::new();
    let (stop, mut once) = (cancel.clone(), true);
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, TurnEvent::ToolProgress { .. }) && std::mem::take(&mut once) {
            sender.interrupt(take).expect("the turn is running");
            // Simulates an observer that continues only after the stop.
            assert!(stop.wait_timeout(Duration::from_secs(30)), "the letter is read although nobody reads");
        }
    }));
    let outcome = world.run_with("go", &cancel, &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Interrupted);
    assert!(started.elapsed() < Duration::from_secs(25));
}

#[test]
fn endless_output_is_reported_in_bounded_events_that_count_the_rest() {
    let command = "timeout 2 yes";
    let world = World::new(vec![calls(&[("s", "shell", json!({ "command": command }))]), text("Done.")]);
    let (_, received) = world.run("go");
    let (mut shown, mut omitted, mut events) = (0, 0, 0);
    for event in &received {
        if let TurnEvent::ToolProgress { text, omitted_bytes, .. } = event {
            assert!(text.len() <= 64 * 1024);
            events += 1;
            shown += text.len() as u64;
            omitted += omitted_bytes;
        }
    }
    assert!(events < 500, "{events} events in two seconds");
    assert!(omitted > shown && shown > 0, "{shown} bytes were shown, {omitted} were not");
}
