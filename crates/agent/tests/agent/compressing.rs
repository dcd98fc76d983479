//! Compression of conversations that change at the same time, and of turns that are too long.

use std::time::{Duration, Instant};

use retake_agent::provider::Wire;
use retake_agent::{
    Cancel, CompressError, CompressOptions, KeepRecent, TurnError, TurnEvent, TurnHandle, TurnOutcome,
};
use retake_model::agent::TurnEnd;
use retake_model::entry::Usage;
use retake_testing::fault_server::{Script, ScriptStep, ScriptedAnswer, events, text_answer};
use retake_timeline::{Caller, ChangeError, Command};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

/// Time limit for stopping a turn: 200 ms is the goal for a wait, and ending includes a sync on a busy
/// machine.
const PROMPTLY: Duration = Duration::from_secs(2);

/// Longer than the time limit for a stop, and longer than all other steps.
const LONG: Duration = Duration::from_secs(15);

/// A delayed summary.
fn slow(summary: &str, pause: Duration) -> Script {
    text(summary).with(2, ScriptStep::Pause(pause))
}

/// A world in which the next turn, which gets the scripts, has to compress the conversation.
fn too_long(scripts: Vec<Script>) -> World {
    let mut world = World::new([vec![text("An answer.")], scripts].concat());
    world.run(&"a long prompt ".repeat(2_000));
    world.runtime.window = 9_000;
    world
}

/// Runs a turn, performs the action during the first summary, and returns how long the turn ran after it.
fn meanwhile(world: &World, action: impl FnOnce()) -> (Result<TurnOutcome, TurnError>, Duration) {
    let asked = world.server.requests().len();
    std::thread::scope(|scope| {
        let turn =
            scope.spawn(|| world.run_with("and now?", &Cancel::new(), &mut RecordingObserver::default()));
        while world.server.requests().len() == asked {
            assert!(!turn.is_finished(), "the control: the model is asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_summary(world, asked), "the control: it is asked for a summary");
        action();
        let started = Instant::now();
        (turn.join().expect("no panic"), started.elapsed())
    })
}

/// Whether a request is for a summary.
fn is_summary(world: &World, number: usize) -> bool {
    world.server.requests()[number].body.contains("You summarise the conversation")
}

#[test]
fn the_provider_s_count_decides_whether_a_conversation_fits() {
    let compresses = |counted: u64, window: u64| {
        let usage = Usage { input_tokens: counted, output_tokens: 5, ..Usage::default() };
        let first = ScriptedAnswer { usage, ..text_answer("An answer.") };
        let first = Script::events(events(Wire::Anthropic, &first));
        let mut world = World::new(vec![first, text("A summary."), text("Next.")]);
        world.run(&"a long prompt ".repeat(2_000));
        world.runtime.window = window;
        world.run("and now?");
        is_summary(&world, 1)
    };
    // The prompt has 7,000 tokens by its bytes, and the tools some thousands.
    assert!(compresses(25_000, 18_000), "the provider counts more than the bytes suggest");
    assert!(!compresses(11_000, 18_000), "the control: the same conversation fits");
    assert!(!compresses(3_500, 9_000), "the provider counts less than the bytes suggest");
}

#[test]
fn other_changes_of_the_thread_do_not_break_a_turn_that_compresses_itself() {
    let pause = Duration::from_millis(700);
    let world = too_long(vec![slow("A summary of it all.", pause), text("Short again.")]);
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let (outcome, _) = meanwhile(&world, || {
        for command in [
            Command::SetDraft { take, text: "typed meanwhile".to_owned() },
            Command::Rename { title: "another title".to_owned() },
            Command::Tag { add: vec!["tag".to_owned()], remove: Vec::new() },
        ] {
            timeline.change(thread, command, Caller::human()).expect("a change");
        }
    });
    let outcome = outcome.expect("the turn continues");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    let transcript = world.transcript();
    assert_eq!(transcript[0], "Summary: A summary of it all.");
    assert_eq!(transcript.last().map(String::as_str), Some("AI: Short again."));
    world.check_requests();
    world.check_rest();
}

#[test]
fn a_summary_of_an_entry_that_was_changed_meanwhile_is_written_again() {
    let pause = Duration::from_millis(700);
    let world =
        too_long(vec![slow("Outdated.", pause), text("A summary of the edit."), text("Short again.")]);
    let (outcome, _) = meanwhile(&world, || edit_first(&world, &"edited meanwhile ".repeat(2_000)));
    let outcome = outcome.expect("the turn continues");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert_eq!(world.transcript()[0], "Summary: A summary of the edit.");
    assert!(is_summary(&world, 2) && world.server.requests()[2].body.contains("edited meanwhile"));
}

#[test]
fn a_conversation_that_was_made_shorter_meanwhile_is_sent_as_it_is() {
    let pause = Duration::from_millis(700);
    let world = too_long(vec![slow("Outdated.", pause), text("Short enough.")]);
    let (outcome, _) = meanwhile(&world, || edit_first(&world, "short"));
    let outcome = outcome.expect("the turn continues");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert_eq!(world.transcript(), ["User: short", "AI: An answer.", "User: and now?", "AI: Short enough."]);
}

/// Edits the first entry.
fn edit_first(world: &World, text: &str) {
    let (timeline, thread, take) = (&world.runtime.timeline, world.thread, world.take());
    let reader = timeline.read().expect("the store is readable");
    let found = reader.state(thread).expect("a state").active_take(&reader.queries()).expect("a take");
    let entry = reader.entries(thread, &found).page(0..1).expect("entries")[0].id;
    drop(reader);
    let edit = Command::EditEntry { take, entry, text: text.to_owned() };
    timeline.change(thread, edit, Caller::human()).expect("an edit");
}

#[test]
fn manual_compression_requires_only_that_the_summarised_entries_are_unchanged() {
    let pause = Duration::from_millis(500);
    let mut world = too_long(vec![slow("By hand.", pause)]);
    world.runtime.window = 100_000;
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let version =
        timeline.read().expect("the store is readable").thread(thread).expect("a thread").summary.version;
    let compress = |expected| {
        let knowing = CompressOptions { expected: Some(expected), ..CompressOptions::default() };
        world.runtime.compress(thread, take, KeepRecent::Entries(0), knowing, &Cancel::new())
    };
    let refused = compress(version - 1).expect_err("another version was expected");
    assert!(
        matches!(refused, CompressError::Turn(TurnError::Change(ChangeError::Conflict { .. }))),
        "{refused:?}"
    );
    let compressed = std::thread::scope(|scope| {
        let work = scope.spawn(|| compress(version));
        while world.server.requests().len() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let draft = Command::SetDraft { take, text: "typed meanwhile".to_owned() };
        timeline.change(thread, draft, Caller::human()).expect("a draft");
        let now = timeline.now();
        let entry = retake_model::entry::EntryVersion::from_text("User", "added meanwhile", now).into();
        let add =
            Command::AddEntries { take, at: retake_timeline::InsertPosition::End, entries: vec![entry] };
        timeline.change(thread, add, Caller::human()).expect("an entry");
        work.join().expect("no panic")
    });
    assert_eq!(compressed.expect("a summary").removed, 2);
    assert_eq!(world.transcript(), ["Summary: By hand.", "User: added meanwhile"]);
}

#[test]
fn a_turn_is_stopped_while_it_compresses_itself() {
    let world = too_long(vec![slow("Too late.", LONG)]);
    let before = world.transcript();
    let (sender, take) =
        (TurnHandle::new(&world.runtime.timeline).expect("the runtime database opens"), world.take());
    let (outcome, took) = meanwhile(&world, || sender.interrupt(take).expect("the turn is running"));
    assert_eq!(outcome.expect("the turn ends").how, TurnEnd::Interrupted);
    assert!(took < PROMPTLY, "{took:?}");
    assert_eq!(
        world.transcript(),
        [before, vec!["User: and now?".to_owned()]].concat(),
        "nothing was compressed"
    );
    world.check_rest();
}

#[test]
fn a_turn_is_undone_while_it_compresses_itself() {
    let world = too_long(vec![slow("Too late.", LONG)]);
    let before = world.transcript();
    let (outcome, took) = meanwhile(&world, || world.undo());
    assert!(matches!(outcome, Err(TurnError::Gone)), "{outcome:?}");
    assert!(took < PROMPTLY, "{took:?}");
    assert_eq!(world.transcript(), before, "nothing was added to what was undone");
    world.check_rest();
}

#[test]
fn a_message_during_compression_is_sent_with_the_next_request() {
    let pause = Duration::from_millis(700);
    let world = too_long(vec![slow("A summary of it all.", pause), text("Understood.")]);
    let (sender, take) =
        (TurnHandle::new(&world.runtime.timeline).expect("the runtime database opens"), world.take());
    let (outcome, _) = meanwhile(&world, || {
        sender.steer(take, "by the way").expect("the turn is running");
    });
    assert_eq!(outcome.expect("the turn ends").how, TurnEnd::Completed);
    assert!(world.last_messages().iter().any(|message| message.to_string().contains("by the way")));
    let expected = ["Summary: A summary of it all.", "User: and now?", "User: by the way", "AI: Understood."];
    assert_eq!(world.transcript(), expected);
    world.check_requests();
    world.check_rest();
}

/// A call with a result of about that many bytes.
fn prints(id: &str, bytes: usize) -> Script {
    calls(&[(id, "shell", json!({ "command": format!("yes word | head -c {bytes}") }))])
}

#[test]
fn a_turn_that_is_too_long_by_itself_is_compressed_between_its_rounds() {
    let mut world = World::new(vec![
        prints("a", 14_000),
        prints("b", 14_000),
        prints("c", 3_000),
        text("What was printed so far."),
        prints("d", 100),
        text("All of it was printed."),
    ]);
    world.runtime.window = 11_500;
    let (outcome, events) = world.run("print everything there is");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Compressed { .. })));
    assert!(is_summary(&world, 3));
    let transcript = world.transcript();
    assert_eq!(
        transcript[..2],
        ["User: print everything there is", "Summary: What was printed so far."],
        "{transcript:?}"
    );
    assert!(world.last_messages()[0].to_string().contains("print everything there is"));
    // The last round before the cut is unchanged.
    assert!(world.server.requests()[4].body.contains("\"c\""), "{transcript:?}");
    world.check_requests();
    world.undo();
    assert_eq!(world.transcript(), Vec::<String>::new(), "one undo takes back all of the turn");
}

#[test]
fn one_round_that_is_larger_than_the_window_is_summarised_whole() {
    let print = |id| (id, "shell", json!({ "command": "yes word | head -c 14000" }));
    let mut world = World::new(vec![
        calls(&["a", "b", "c", "d", "e"].map(print)),
        text("Five times the same."),
        text("Done."),
    ]);
    world.runtime.window = 12_000;
    let (outcome, _) = world.run("print it five times");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert_eq!(
        world.transcript(),
        ["User: print it five times", "Summary: Five times the same.", "AI: Done."]
    );
    world.check_requests();
}

#[test]
fn a_conversation_that_the_provider_finds_too_long_is_compressed_and_sent_again() {
    let refusal = || {
        let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
        Script::status(400, body)
    };
    // The text to summarise is too long as well.
    let scripts = vec![refusal(), refusal(), text("A summary of it all."), text("Short again.")];
    let world = World::new([vec![text("An answer.")], scripts].concat());
    world.run(&"a long prompt ".repeat(2_000));
    let (outcome, events) = world.run("and now?");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Compressed { .. })), "{events:?}");
    assert_eq!(world.transcript(), ["Summary: A summary of it all.", "User: and now?", "AI: Short again."]);
    let sizes: Vec<usize> = world.server.requests().iter().map(|request| request.body.len()).collect();
    assert!(is_summary(&world, 2) && is_summary(&world, 3), "{sizes:?}");
    world.check_requests();
}

#[test]
fn a_prompt_that_is_too_long_by_itself_ends_the_turn_after_one_summary() {
    let mut world = World::new(vec![text("An answer."), text("A summary."), text("Never sent.")]);
    world.run("hello");
    world.runtime.window = 9_000;
    let (outcome, _) = world.run(&"a long prompt ".repeat(3_000));
    assert_eq!(outcome.how, TurnEnd::Failed);
    assert!(outcome.message.expect("a reason").contains("9000"), "it says how long it may be");
    assert_eq!(world.server.requests().len(), 2, "nothing is summarised twice in vain");
}
