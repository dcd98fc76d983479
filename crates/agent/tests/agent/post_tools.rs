//! The hook after tools.

use std::time::{Duration, Instant};

use retake_agent::{Cancel, HookCommand, HookFailure, HookTrigger, PostToolsHook, ResumeRequest, TurnEvent};
use retake_model::agent::AgentStateKind::{self, Calling, Executing, PostTools, Processing, Waiting};
use retake_model::agent::{ToolOutcome, TurnEnd};
use retake_timeline::{FileError, SharedChanges};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

fn world(command: &str, change: impl FnOnce(&mut PostToolsHook)) -> World {
    let write = calls(&[("w", "write", json!({"path": "work.txt", "content": "one\n"}))]);
    let mut world = World::new(vec![write, text("Done.")]);
    let mut hook = PostToolsHook::new(HookCommand::Line(command.to_owned()));
    change(&mut hook);
    world.runtime.post_tools = Some(hook);
    world
}

fn states(events: &[TurnEvent]) -> Vec<AgentStateKind> {
    let state = |event: &TurnEvent| match event {
        TurnEvent::State { state } => Some(*state),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

fn ended(events: &[TurnEvent]) -> Vec<(ToolOutcome, u64)> {
    let ended = |event: &TurnEvent| match event {
        TurnEvent::HookEnded { outcome, files, .. } => Some((*outcome, *files)),
        _ => None,
    };
    events.iter().filter_map(ended).collect()
}

#[test]
fn a_formatter_runs_after_an_edit_and_is_undone_with_the_turn() {
    let world = world("sed -i s/one/ONE/ work.txt && echo formatted", |_| {});
    let (outcome, events) = world.run("write");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert_eq!(world.read("work.txt").as_deref(), Some("ONE\n"));
    let transcript = world.transcript();
    assert!(transcript.iter().any(|line| line.starts_with("Hook: ")), "{transcript:?}");
    let request = world.last_messages().last().expect("messages were sent").to_string();
    assert!(request.contains("formatted") && request.contains("[Exit code 0]"), "{request}");
    assert_eq!(states(&events), [Calling, Processing, Executing, PostTools, Calling, Processing, Waiting]);
    assert_eq!(ended(&events), [(ToolOutcome::Succeeded, 1)]);
    world.check_requests();
    world.check_rest();
    world.undo();
    assert_eq!(world.read("work.txt"), None);
    assert!(world.entries().is_empty(), "{:?}", world.transcript());
}

#[test]
fn the_model_reads_why_the_hook_failed() {
    let world = world("echo broken; exit 3", |_| {});
    let (outcome, events) = world.run("write");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(ended(&events), [(ToolOutcome::Failed, 0)]);
    let request = world.last_messages().last().expect("messages were sent").to_string();
    assert!(request.contains("broken") && request.contains("[Exit code 3]"), "{request}");
    world.check_requests();
}

#[test]
fn a_failed_hook_can_stop_the_turn_until_it_is_resumed() {
    let world = world("echo broken; exit 3", |hook| hook.on_failure = HookFailure::Stop);
    let (outcome, _) = world.run("write");
    assert_eq!(outcome.how, TurnEnd::Failed);
    assert!(
        outcome.message.is_some_and(|message| message.contains("exit 3")),
        "the message names the command"
    );
    let mut observer = RecordingObserver::default();
    let request = ResumeRequest::default();
    let outcome = world.runtime.resume(world.thread, world.take(), request, &Cancel::new(), &mut observer);
    assert_eq!(outcome.expect("the turn resumes").how, TurnEnd::Completed);
    assert_eq!(ended(&observer.events), [], "the hook does not run again");
    let transcript = world.transcript();
    assert_eq!(transcript.iter().filter(|line| line.starts_with("Hook: ")).count(), 1, "{transcript:?}");
    world.check_requests();
    world.check_rest();
}

#[test]
fn the_hook_runs_after_changes_or_always() {
    for (when, runs) in [(HookTrigger::Edits, false), (HookTrigger::Always, true)] {
        for call in [("l", "list", json!({})), ("s", "shell", json!({"command": "true"}))] {
            let mut world = World::new(vec![calls(std::slice::from_ref(&call)), text("Done.")]);
            let command = HookCommand::Arguments(vec!["touch".to_owned(), "the hook ran".to_owned()]);
            world.runtime.post_tools = Some(PostToolsHook { when, ..PostToolsHook::new(command) });
            world.run("look");
            assert_eq!(world.read("the hook ran").is_some(), runs, "{when:?} {call:?}");
            world.check_requests();
            world.check_rest();
        }
    }
}

#[test]
fn a_hook_is_stopped_like_a_tool() {
    let world = world("echo made > made.txt; sleep 60", |_| {});
    let cancel = Cancel::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut observer = RecordingObserver::default();
    let (own, made) = (cancel.clone(), world.project.join("made.txt"));
    *observer.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, TurnEvent::HookStarted { .. }) {
            let (own, made, sender) = (own.clone(), made.clone(), sender.clone());
            std::thread::spawn(move || {
                while !made.exists() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = sender.send(Instant::now());
                own.set();
            });
        }
    }));
    let outcome = world.run_with("write", &cancel, &mut observer).expect("the turn runs");
    let stopped = receiver.recv().expect("the hook started").elapsed();
    assert_eq!(outcome.how, TurnEnd::Interrupted);
    // The command ends within 200 ms; publishing on a busy machine takes longer.
    assert!(stopped < Duration::from_secs(5), "{stopped:?}");
    assert_eq!(ended(&observer.events), [(ToolOutcome::Interrupted, 1)]);
    world.check_rest();
    world.undo();
    assert_eq!((world.read("made.txt"), world.read("work.txt")), (None, None));
}

#[test]
fn a_hook_that_was_killed_does_not_run_again() {
    let world = world("echo run >> runs.txt; echo out; sleep 0.2", |_| {});
    let mut observer = RecordingObserver::default();
    *observer.at.get_mut().expect("one thread") = Some(Box::new(|event| {
        assert!(!matches!(event, TurnEvent::HookProgress { .. }), "an intended panic");
    }));
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| world.run_with("write", &Cancel::new(), &mut observer));
        assert!(turn.join().is_err(), "the turn ends in the middle of the hook");
    });
    let mut observer = RecordingObserver::default();
    let request = ResumeRequest::default();
    let outcome = world.runtime.resume(world.thread, world.take(), request, &Cancel::new(), &mut observer);
    assert_eq!(outcome.expect("the turn resumes").how, TurnEnd::Completed);
    assert_eq!(world.read("runs.txt").as_deref(), Some("run\n"));
    let request = world.last_messages().last().expect("messages were sent").to_string();
    assert!(request.contains("was interrupted"), "{request}");
    world.check_requests();
    world.check_rest();
    // The user may have made the changes after the hook was killed.
    assert!(matches!(world.try_undo(SharedChanges::Refuse), Err(FileError::SharedChanges(_))));
    world.try_undo(SharedChanges::Undo).expect("an undo that was asked for");
    assert_eq!((world.read("runs.txt"), world.read("work.txt")), (None, None));
    assert!(world.entries().is_empty(), "{:?}", world.transcript());
}
