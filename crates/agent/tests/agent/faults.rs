//! Model failures: retried where that helps; otherwise the turn keeps the partial answer.

use std::time::Duration;

use retake_agent::{Cancel, CompressOptions, KeepRecent, ResumeRequest, TurnError, TurnEvent};
use retake_model::agent::{AgentState, TurnEnd};
use retake_testing::fault_server::{Script, ScriptStep};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

#[test]
fn a_temporary_failure_is_retried_and_leaves_no_trace() {
    let cut = || text("Half of an answer that is cut").with_fault_after(4, ScriptStep::Cut);
    let check = |first: Vec<Script>| {
        let count = first.len();
        let world = World::new(first.into_iter().chain([text("Here I am.")]).collect());
        let (outcome, events) = world.run("hello");
        assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
        assert_eq!(world.transcript(), ["User: hello", "AI: Here I am."]);
        let retries = events.iter().filter(|event| matches!(event, TurnEvent::Retrying { .. })).count();
        assert_eq!(retries, count);
        world.check_requests();
        world.check_rest();
    };
    check(vec![Script::status(429, "{}")]);
    check(vec![Script::status(500, "oops"), Script::status(529, "{}")]);
    check(vec![cut(), cut()]);
    check(vec![Script::events(["data: not JSON\n\n".to_owned()])]);
}

#[test]
fn a_permanent_failure_keeps_the_partial_answer_and_can_be_resumed() {
    let cut = || text("Half of an answer that is cut").with_fault_after(5, ScriptStep::Cut);
    let world = World::new(vec![cut(), cut(), cut(), text("The rest.")]);
    let (outcome, _) = world.run("hello");
    assert_eq!(outcome.how, TurnEnd::Failed);
    let entries = world.entries();
    assert_eq!(entries.len(), 2);
    assert!(entries[1].text().starts_with("Half"), "{:?}", entries[1]);
    assert!(entries[1].extra.contains_key("interrupted"));
    let mut witness = RecordingObserver::default();
    let outcome = world
        .runtime
        .resume(world.thread, world.take(), ResumeRequest::default(), &Cancel::new(), &mut witness)
        .expect("the turn resumes");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(world.entries().len(), 3);
    world.check_requests();
    world.check_rest();
    assert!(matches!(
        world.runtime.resume(
            world.thread,
            world.take(),
            ResumeRequest::default(),
            &Cancel::new(),
            &mut RecordingObserver::default()
        ),
        Err(TurnError::Nothing)
    ));
}

#[test]
fn permanent_errors_are_not_retried() {
    for status in [400, 401, 403, 404, 413] {
        let world = World::new(vec![Script::status(status, r#"{"error":{"message":"no"}}"#)]);
        let (outcome, _) = world.run("hello");
        assert_eq!(outcome.how, TurnEnd::Failed, "{status}");
        assert_eq!(world.server.requests().len(), 1, "{status}");
        assert!(outcome.message.is_some_and(|message| !message.is_empty()));
        // The prompt stays, and the next turn works.
        assert_eq!(world.transcript(), ["User: hello"]);
    }
}

#[test]
fn an_interrupt_ends_a_stalled_answer_and_keeps_the_partial_answer() {
    let world = World::new(vec![text("Wait for it, it takes long").with_fault_after(4, ScriptStep::Stall)]);
    let cancel = Cancel::new();
    let mut witness = RecordingObserver::default();
    let outcome = std::thread::scope(|scope| {
        let setter = cancel.clone();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(600));
            setter.set();
        });
        let started = std::time::Instant::now();
        let outcome = world.run_with("hello", &cancel, &mut witness).expect("the turn runs");
        assert!(started.elapsed() < Duration::from_secs(5));
        outcome
    });
    assert_eq!(outcome.how, TurnEnd::Interrupted);
    let entries = world.entries();
    assert_eq!(entries.len(), 2);
    assert!(entries[1].text().starts_with("Wait"), "{:?}", entries[1].text());
    world.check_rest();
}

#[test]
fn a_shutdown_leaves_the_turn_to_be_resumed() {
    let world = World::new(vec![
        calls(&[("s", "shell", json!({"command": "echo once >> ran.txt; sleep 30"}))]),
        text("After."),
    ]);
    let cancel = Cancel::new();
    let mut witness = RecordingObserver::default();
    let setter = cancel.clone();
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, TurnEvent::ToolProgress { .. } | TurnEvent::ToolStarted { .. }) {
            setter.shut_down();
        }
    }));
    let outcome = world.run_with("run it", &cancel, &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::ShutDown);
    let agent = || {
        let reader = world.runtime.timeline.read().expect("a store");
        let state = reader.state(world.thread).expect("a thread");
        let take = state.take(&reader.queries(), world.take()).expect("readable").expect("a take");
        take.agent.map(|agent| agent.state)
    };
    assert_eq!(agent(), Some(AgentState::ShuttingDown { unfinished: true }));
    let mut witness = RecordingObserver::default();
    let outcome = world
        .runtime
        .resume(world.thread, world.take(), ResumeRequest::default(), &Cancel::new(), &mut witness)
        .expect("the turn resumes");
    assert_eq!((outcome.how, agent()), (TurnEnd::Completed, None));
    let result = &world.last_messages()[2]["content"][0];
    assert_eq!(result["is_error"], json!(true), "the model learns that the call was interrupted: {result}");
    world.check_requests();
    world.check_rest();
}

#[test]
fn a_turn_whose_program_died_is_closed_by_the_next_and_nothing_runs_twice() {
    let world = World::new(vec![
        calls(&[("s", "shell", json!({"command": "echo once >> ran.txt"}))]),
        text("After."),
        text("Second."),
    ]);
    // The process dies while the tool runs: the driver never continues.
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut witness = RecordingObserver::default();
        *witness.at.get_mut().expect("one thread") = Some(Box::new(|event| {
            assert!(!matches!(event, TurnEvent::ToolStarted { .. }), "dies here");
        }));
        world.run_with("run it", &Cancel::new(), &mut witness)
    }));
    assert!(died.is_err(), "the control: it died");
    assert_eq!(world.read("ran.txt"), None, "it died before the tool ran");
    let mut witness = RecordingObserver::default();
    let outcome = world
        .runtime
        .resume(world.thread, world.take(), ResumeRequest::default(), &Cancel::new(), &mut witness)
        .expect("the turn resumes");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(world.read("ran.txt"), None, "what was running is never run again");
    let result = &world.last_messages()[2]["content"][0];
    assert_eq!(result["is_error"], json!(true), "{result}");
    world.check_requests();
    world.check_rest();
}

#[test]
fn a_conversation_that_does_not_fit_is_compressed_first() {
    // The first summary request fails and is retried like any other.
    let mut world = World::new(vec![
        text("An answer."),
        Script::status(529, "{}"),
        text("A summary of it all."),
        text("Short again."),
    ]);
    world.run(&"a long prompt ".repeat(2_000));
    let before = world.transcript();
    world.runtime.window = 9_000;
    let (outcome, events) = world.run("and now?");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Compressed { .. })), "{events:?}");
    let transcript = world.transcript();
    assert_eq!(transcript[0], "Summary: A summary of it all.");
    assert_eq!(transcript.last().map(String::as_str), Some("AI: Short again."));
    world.check_requests();
    world.undo();
    assert_eq!(world.transcript(), before, "the compression is a part of its turn, and undone with it");
}

#[test]
fn the_first_turn_in_a_long_thread_fits_after_it_was_compressed() {
    let mut world = World::new(Vec::new());
    world.runtime.backend = retake_agent::ModelBackend::Offline;
    world.runtime.window = 8_000;
    let now = world.runtime.timeline.now();
    let entry = |number: usize| {
        let role = if number.is_multiple_of(2) { "User" } else { "AI" };
        let text = format!("Entry {number}: {}", "some words of about one line ".repeat(2));
        retake_model::entry::EntryVersion::from_text(role, &text, now).into()
    };
    let add = retake_timeline::Command::AddEntries {
        take: world.take(),
        at: retake_timeline::InsertPosition::End,
        entries: (0..3_000).map(entry).collect(),
    };
    world.runtime.timeline.change(world.thread, add, retake_timeline::Caller::human()).expect("entries");
    let (outcome, received) = world.run("say Hello.");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert!(
        received.iter().any(|event| matches!(event, TurnEvent::Compressed { .. })),
        "the control: it was too long"
    );
}

#[test]
fn an_empty_summary_is_reported_and_changes_nothing() {
    let world = World::new(vec![text("An answer."), text(" \n ")]);
    world.run("hello");
    let version = || {
        world
            .runtime
            .timeline
            .read()
            .expect("the store is readable")
            .thread(world.thread)
            .expect("it")
            .summary
            .version
    };
    let before = version();
    let (keep, knowing) = (KeepRecent::Entries(0), CompressOptions::default());
    let refused = world.runtime.compress(world.thread, world.take(), keep, knowing, &Cancel::new());
    let error = refused.expect_err("there is nothing to put in").to_string();
    assert!(error.contains("the summary is empty") && !error.contains("prompt"), "{error}");
    assert_eq!(version(), before);
}
