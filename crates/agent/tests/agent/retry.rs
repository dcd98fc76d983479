//! Retry: the fork, the files and the start of the turn are one operation.

use retake_agent::compare::{AlignedTurn, ComparedTake, EntryRange, compare};
use retake_agent::provider::prices::Prices;
use retake_agent::{Cancel, ModelBackend, RetryRequest, TurnError, TurnOutcome, TurnRequest};
use retake_model::agent::TurnEnd;
use retake_model::command::{CommandError, Prompt};
use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::EntryId;
use retake_model::replay::OnConflict;
use retake_timeline::{ChangeError, Command, MoveOptions, SharedChanges};
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

fn message(world: &World) -> EntryId {
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let state = reader.state(world.thread).expect("a state");
    let take = state.active_take(&reader.queries()).expect("a take");
    let page = reader.entries(world.thread, &take).page(0..take.entries.len()).expect("entries");
    page.iter().rev().find(|view| RoleKind::of(&view.entry.role) == RoleKind::User).expect("a message").id
}

fn retry(world: &World, prompt: Prompt) -> Result<TurnOutcome, TurnError> {
    let beginning = TurnRequest::with(prompt);
    let again = RetryRequest {
        from: world.take(),
        at: message(world),
        name: None,
        on_conflict: OnConflict::default(),
        shared: SharedChanges::default(),
    };
    world.runtime.retry(world.thread, again, beginning, &Cancel::new(), &mut RecordingObserver::default())
}

fn entry(world: &World, text: &str) -> Prompt {
    Prompt::Entry(EntryVersion::from_text("User", text, world.runtime.timeline.now()).into())
}

#[test]
fn a_retry_starts_from_the_files_before_the_prompt_and_leaves_the_old_take_unchanged() {
    let write = |content: &str| calls(&[("w", "write", json!({"path": "work.txt", "content": content}))]);
    let world = World::new(vec![write("first"), text("One."), write("second"), text("Two.")]);
    world.run("do it");
    let main = world.take();
    assert_eq!(world.read("work.txt").as_deref(), Some("first"));
    let outcome = retry(&world, Prompt::Original).expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_ne!(outcome.take, main);
    assert_eq!(world.takes(), 2);
    assert_eq!(world.read("work.txt").as_deref(), Some("second"));
    assert_eq!(world.last_messages().len(), 3, "the model saw nothing of the first attempt");
    world.check_requests();

    let reader = world.runtime.timeline.read().expect("the store is readable");
    let state = reader.state(world.thread).expect("a state");
    let take = |id| state.take(&reader.queries(), id).expect("the store is readable").expect("a take");
    let compared = compare(&reader, world.thread, &[&take(main), &take(outcome.take)], &Prices::default())
        .expect("both");
    assert_eq!(compared.shared, 0);
    let of_takes = |value: fn(&ComparedTake) -> u64| compared.takes.iter().map(value).collect::<Vec<_>>();
    assert_eq!(of_takes(|take| take.entries.len() as u64), [4, 4]);
    assert_eq!(of_takes(|take| take.calls.made), [1, 1]);
    let range = EntryRange { first: 1, count: 4, prompt: 1 };
    let turn = AlignedTurn { same_prompt: true, same_answer: false, entries: vec![Some(range), Some(range)] };
    assert_eq!(compared.turns, [turn]);
    let (prompt, answer) = compared.entries(&compared.turns[0], 1).expect("its entries");
    assert_eq!((prompt.len(), prompt[0].entry.text().as_str(), answer.len()), (1, "do it", 3));
    drop(reader);

    let working_copy = world.runtime.working_copy.as_ref().expect("files are recorded");
    let back = Command::Switch { take: main };
    working_copy
        .change(world.thread, back, retake_timeline::Caller::human(), MoveOptions::default())
        .expect("a switch");
    assert_eq!(world.read("work.txt").as_deref(), Some("first"));
    assert_eq!(world.transcript().last().map(String::as_str), Some("AI: One."));
}

#[test]
fn the_model_receives_the_edited_prompt() {
    let world = World::new(vec![text("One."), text("Two.")]);
    world.run("do it");
    retry(&world, entry(&world, "do it, but better")).expect("the turn runs");
    assert_eq!(world.transcript(), ["User: do it, but better", "AI: Two."]);
}

#[test]
fn a_retry_that_cannot_start_creates_no_fork() {
    let mut world = World::new(vec![text("One.")]);
    world.run("do it");
    let before =
        world.runtime.timeline.read().expect("the store is readable").head(world.thread).expect("a head").id;
    for prompt in [entry(&world, ""), entry(&world, " \n\t ")] {
        let refused = retry(&world, prompt);
        assert!(
            matches!(refused, Err(TurnError::Change(ChangeError::Refused(CommandError::EmptyPrompt)))),
            "{refused:?}"
        );
    }
    // A key that cannot be sent is detected before anything changes.
    if let ModelBackend::Remote { endpoint, .. } = &mut world.runtime.backend {
        endpoint.base_url = "http://example.org".to_owned();
    }
    assert!(matches!(retry(&world, Prompt::Original), Err(TurnError::Provider(_))));
    let after =
        world.runtime.timeline.read().expect("the store is readable").head(world.thread).expect("a head").id;
    assert_eq!(before, after, "nothing was done at all");
    assert_eq!(world.takes(), 1);
}
