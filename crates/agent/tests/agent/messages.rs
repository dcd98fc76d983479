//! Messages to a running turn.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use retake_agent::approval::ApprovalMode;
use retake_agent::{Cancel, Reply, ResumeRequest, SendError, TurnError, TurnEvent, TurnHandle, TurnObserver};
use retake_model::agent::TurnEnd;
use retake_model::operation::Actor;
use retake_testing::fault_server::{Script, ScriptStep};
use retake_timeline::{Caller, Command, Goal, MoveOptions, Unit};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

/// Performs an action at an event of the turn.
fn at(wanted: fn(&TurnEvent) -> bool, mut action: impl FnMut() + Send + 'static) -> RecordingObserver {
    let mut witness = RecordingObserver::default();
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if wanted(event) {
            action();
        }
    }));
    witness
}

#[test]
fn a_message_during_a_turn_is_sent_with_the_next_request() {
    let world = World::new(vec![calls(&[("l", "list", json!({}))]), text("Understood.")]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let mut witness = at(
        |event| matches!(event, TurnEvent::ToolStarted { .. }),
        move || {
            TurnHandle::new(&timeline)
                .expect("the runtime database opens")
                .steer(take, "only the first")
                .expect("the turn is running");
        },
    );
    world.run_with("list", &Cancel::new(), &mut witness).expect("the turn runs");
    let transcript = world.transcript();
    assert_eq!(transcript.iter().filter(|line| line.contains("only the first")).count(), 1, "{transcript:?}");
    assert!(world.last_messages().iter().any(|message| message.to_string().contains("only the first")));
    world.check_requests();
    world.check_rest();
}

#[test]
fn a_message_during_the_last_answer_makes_the_model_answer_again() {
    let slow = text("A first answer, in pieces").with(3, ScriptStep::Pause(Duration::from_millis(900)));
    let world = World::new(vec![slow, text("A second one.")]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let mut once = true;
    let mut witness = at(
        |event| matches!(event, TurnEvent::Text { .. }),
        move || {
            if std::mem::take(&mut once) {
                TurnHandle::new(&timeline)
                    .expect("the runtime database opens")
                    .steer(take, "and more")
                    .expect("the turn is running");
            }
        },
    );
    let outcome = world.run_with("tell me", &Cancel::new(), &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Completed);
    let transcript = world.transcript();
    assert_eq!(transcript.last().map(String::as_str), Some("AI: A second one."), "{transcript:?}");
    world.check_requests();
}

#[test]
fn a_message_before_a_retry_is_sent_with_it() {
    let world = World::new(vec![Script::status(529, "{}"), text("Understood.")]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let mut witness = at(
        |event| matches!(event, TurnEvent::Retrying { .. }),
        move || {
            let sender = TurnHandle::new(&timeline).expect("the runtime database opens");
            sender.steer(take, "and more").expect("the turn is running");
        },
    );
    let outcome = world.run_with("tell me", &Cancel::new(), &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(world.transcript(), ["User: tell me", "User: and more", "AI: Understood."]);
    assert!(world.last_messages().iter().any(|message| message.to_string().contains("and more")));
    world.check_rest();
}

#[test]
fn a_message_during_a_permanently_failing_answer_is_stored_once() {
    let refusal =
        "event: error\ndata: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no\"}}\n\n";
    let failing = text("A first answer, in pieces")
        .with_fault_after(4, ScriptStep::Pause(Duration::from_millis(700)))
        .with(5, ScriptStep::Send(refusal.as_bytes().to_vec()));
    let world = World::new(vec![failing]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let mut once = true;
    let mut witness = at(
        |event| matches!(event, TurnEvent::Text { .. }),
        move || {
            if std::mem::take(&mut once) {
                TurnHandle::new(&timeline)
                    .expect("the runtime database opens")
                    .steer(take, "and more")
                    .expect("the turn is running");
            }
        },
    );
    let outcome = world.run_with("tell me", &Cancel::new(), &mut witness).expect("the turn ends");
    assert_eq!(outcome.how, TurnEnd::Failed);
    let transcript = world.transcript();
    assert_eq!(transcript.iter().filter(|line| line.contains("and more")).count(), 1, "{transcript:?}");
    world.check_rest();
}

#[test]
fn a_message_approves_or_denies_a_call_without_a_terminal() {
    let mut world = World::new(vec![
        calls(&[("w", "write", json!({"path": "new.txt", "content": "x"}))]),
        text("Written."),
    ]);
    world.runtime.approval.mode = ApprovalMode::Ask;
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let mut witness = at(
        |event| matches!(event, TurnEvent::ApprovalRequested { .. }),
        move || {
            let reply = Reply { allowed: true, remember: false, reason: None };
            TurnHandle::new(&timeline)
                .expect("the runtime database opens")
                .decide(thread, take, "w", &reply)
                .expect("the turn is running");
        },
    );
    world.run_with("write", &Cancel::new(), &mut witness).expect("the turn runs");
    assert_eq!(world.read("new.txt").as_deref(), Some("x"));
}

/// Forwards events and answers no approval request.
struct ForwardingObserver(mpsc::Sender<TurnEvent>);

impl TurnObserver for ForwardingObserver {
    fn on_event(&mut self, event: &TurnEvent) {
        let _ = self.0.send(event.clone());
    }
}

#[test]
fn a_server_thread_runs_a_turn_for_another_process() {
    let mut world = World::new(vec![
        calls(&[("w", "write", json!({"path": "new.txt", "content": "x"}))]),
        text("Written."),
    ]);
    world.runtime.approval.mode = ApprovalMode::Ask;
    world.runtime.actor = Actor::Client { name: "a program".to_owned() };
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let beginning = world.prompt("write");
    let (runtime, cancel) = (Arc::new(world.runtime), Cancel::new());
    let (sender, events) = mpsc::channel();
    let background = std::thread::spawn({
        let (runtime, cancel) = (Arc::clone(&runtime), cancel.clone());
        move || runtime.run(thread, take, beginning, &cancel, &mut ForwardingObserver(sender))
    });
    let mut received = events.iter();
    let Some(TurnEvent::Started { operation, version, .. }) = received.next() else {
        panic!("the first thing is that it has begun");
    };
    let history =
        timeline.read().expect("the store is readable").history(thread).list(None, 100).expect("a history");
    let started = history.iter().find(|item| item.version == version).expect("it is on disk");
    assert_eq!((Some(started.operation), &started.actor), (operation, &runtime.actor));
    received.find(|event| matches!(event, TurnEvent::ApprovalRequested { .. })).expect("it asks");
    let reply = Reply { allowed: true, remember: false, reason: None };
    TurnHandle::new(&timeline)
        .expect("the runtime database opens")
        .decide(thread, take, "w", &reply)
        .expect("the turn is running");
    let outcome = background.join().expect("no panic").expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(std::fs::read_to_string(world.project.join("new.txt")).expect("a file"), "x");
}

#[test]
fn another_process_stops_a_turn_and_only_one_runs_at_a_time() {
    let world =
        World::new(vec![calls(&[("s", "shell", json!({"command": "sleep 30; echo late > late.txt"}))])]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let sender = TurnHandle::new(&timeline).expect("the runtime database opens");
    assert!(matches!(sender.interrupt(take), Err(SendError::NoTurnRunning)));
    let started = std::time::Instant::now();
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| {
            world.run_with("sleep", &Cancel::new(), &mut RecordingObserver::default()).expect("the turn runs")
        });
        while !sender.is_running(take).expect("it can be asked") {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(500));
        let second = world.run_with("me too", &Cancel::new(), &mut RecordingObserver::default());
        assert!(matches!(second, Err(TurnError::Busy)));
        sender.interrupt(take).expect("the turn is running");
        assert_eq!(turn.join().expect("no panic").how, TurnEnd::Interrupted);
    });
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(world.read("late.txt"), None);
    world.check_rest();
}

#[test]
fn a_turn_that_is_undone_while_it_runs_stops_by_itself() {
    let slow = text("An answer that takes its time").with(3, ScriptStep::Pause(Duration::from_millis(700)));
    let world = World::new(vec![slow]);
    let (working_copy, thread) =
        (world.runtime.working_copy.clone().expect("files are recorded"), world.thread);
    let mut once = true;
    let mut witness = at(
        |event| matches!(event, TurnEvent::Text { .. }),
        move || {
            if std::mem::take(&mut once) {
                working_copy
                    .go(thread, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default())
                    .expect("an undo");
            }
        },
    );
    let ended = world.run_with("hello", &Cancel::new(), &mut witness);
    assert!(matches!(ended, Err(TurnError::Gone)), "{ended:?}");
    assert_eq!(world.transcript(), Vec::<String>::new(), "nothing was added to what was undone");
    world.check_rest();
}

#[test]
fn a_message_to_a_crashed_turn_is_not_lost() {
    let world = World::new(vec![calls(&[("l", "shell", json!({"command": "true"}))]), text("Heard.")]);
    let (timeline, take) = (world.runtime.timeline.clone(), world.take());
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut witness = at(
            |event| matches!(event, TurnEvent::ToolStarted { .. }),
            move || {
                TurnHandle::new(&timeline)
                    .expect("the runtime database opens")
                    .steer(take, "by the way")
                    .expect("the turn is running");
                panic!("dies here");
            },
        );
        world.run_with("run it", &Cancel::new(), &mut witness)
    }));
    assert!(died.is_err(), "the control: it died");
    world
        .runtime
        .resume(
            world.thread,
            world.take(),
            ResumeRequest::default(),
            &Cancel::new(),
            &mut RecordingObserver::default(),
        )
        .expect("the turn resumes");
    let transcript = world.transcript();
    assert_eq!(transcript.iter().filter(|line| line.contains("by the way")).count(), 1, "{transcript:?}");
    assert!(world.last_messages().iter().any(|message| message.to_string().contains("by the way")));
    world.check_requests();
    world.check_rest();
}

#[test]
fn switching_takes_moves_no_files_while_a_turn_runs() {
    let slow = text("An answer that takes its time").with(3, ScriptStep::Pause(Duration::from_millis(500)));
    let world = World::new(vec![text("First."), slow]);
    world.run("begin");
    let (working_copy, thread, main) =
        (world.runtime.working_copy.clone().expect("files are recorded"), world.thread, world.take());
    let branch = Command::Branch { from: main, at: None, name: Some("other".to_owned()) };
    working_copy.change(thread, branch, Caller::human(), MoveOptions::default()).expect("a branch");
    let back = Command::Switch { take: main };
    let (mut once, tried) = (true, Arc::new(Mutex::new(None)));
    let kept = Arc::clone(&tried);
    let mut witness = at(
        |event| matches!(event, TurnEvent::Text { .. }),
        move || {
            if std::mem::take(&mut once) {
                let refused =
                    working_copy.change(thread, back.clone(), Caller::human(), MoveOptions::default());
                *kept.lock().expect("one thread") =
                    Some(refused.map(|_| ()).map_err(|error| error.to_string()));
            }
        },
    );
    let outcome = world.run_with("hello", &Cancel::new(), &mut witness).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Completed);
    let tried = tried.lock().expect("one thread").clone().expect("it was tried");
    assert!(tried.expect_err("it is refused").contains("other"));
}

#[test]
fn changes_of_a_thread_during_a_turn_are_undone_with_it() {
    let world = World::new(vec![calls(&[("l", "list", json!({}))]), text("Done.")]);
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let mut witness = at(
        |event| matches!(event, TurnEvent::ToolStarted { .. }),
        move || {
            let draft = Command::SetDraft { take, text: "next".to_owned() };
            timeline.change(thread, draft, Caller::human()).expect("a draft");
        },
    );
    world.run_with("list", &Cancel::new(), &mut witness).expect("the turn runs");
    world.undo();
    assert_eq!(world.transcript(), Vec::<String>::new(), "the whole turn, and not a half of it");
}
