//! The turns of takes: numbered along the history of a take, and the same whether they were read before or not.

use retake_model::agent::AgentState;
use retake_model::command::{NewEntry, Prompt, TurnAdvance, TurnStart};
use retake_model::entry::EntryVersion;
use retake_model::id::TurnId;
use retake_model::operation::TurnStep;
use retake_timeline::{Caller, Command, FindError, Goal, InsertPosition, Rules, Timeline, TurnStatus, Unit};

use crate::support::World;

impl World {
    fn entry_of(&self, role: &str, text: &str) -> NewEntry {
        EntryVersion::from_text(role, text, self.timeline.now()).into()
    }

    fn turn_start(&self, prompt: &str) -> TurnStart {
        TurnStart {
            turn: TurnId::generate(&mut self.timeline.fresh()),
            context: Vec::new(),
            prompt: Prompt::Entry(self.entry_of("User", prompt)),
            settings: Vec::new(),
            sent: None,
        }
    }

    fn step(&self, turn: TurnId, state: AgentState, step: TurnStep, text: &str) {
        let take = self.state().active;
        let entries = vec![self.entry_of("AI", text)];
        let advance = TurnAdvance { turn, entries, settings: Vec::new(), state, step };
        let caller = Caller { turn: Some(turn), ..Caller::human() };
        self.timeline.change(self.thread, Command::AdvanceTurn { take, advance }, caller).expect("a step");
    }

    fn start(&self, start: TurnStart, command: impl FnOnce(TurnStart) -> Command) -> TurnId {
        let turn = start.turn;
        let caller = Caller { turn: Some(turn), ..Caller::human() };
        self.timeline.change(self.thread, command(start), caller).expect("a start");
        turn
    }

    /// A prompt and its answer.
    fn prompt(&self, text: &str) -> TurnId {
        let take = self.state().active;
        let turn = self.start(self.turn_start(text), |start| Command::StartTurn { take, start });
        self.step(turn, AgentState::Waiting, TurnStep::Answered, "done");
        turn
    }

    /// The turns of the active take, oldest first. A timeline that has read nothing before must agree.
    fn turn_names(&self) -> Vec<String> {
        let names = |timeline: &Timeline| {
            let reader = timeline.read().expect("a reader");
            let turns = reader.history(self.thread).turns().expect("turns");
            let mut list = turns.list(None, 100).expect("a list");
            assert_eq!(list.len() as u64, turns.count());
            list.reverse();
            list.iter()
                .map(|turn| (turn.clone(), format!("{} {}", turn.name.number, turn.name.prompt)))
                .unzip()
        };
        let (read, shown): (Vec<_>, Vec<String>) = names(&self.timeline);
        let fresh = Timeline::open(self.folder.path(), Rules::default()).expect("the same store");
        let (again, _): (Vec<_>, Vec<String>) = names(&fresh);
        assert_eq!(read, again, "read step by step, and at once");
        shown
    }
}

#[test]
fn turns_are_numbered_along_the_history_of_a_take() {
    let world = World::new();
    let check = |what: &str, expected: &[&str]| assert_eq!(world.turn_names(), expected, "{what}");
    check("none", &[]);
    world.say("User", "by hand, no turn");
    world.prompt("one");
    world.done(Command::SetDraft { take: world.state().active, text: "typing".into() });
    world.prompt("two");
    world.prompt("three");
    check("three", &["1 one", "2 two", "3 three"]);
    world.undo().expect("an undo");
    check("undone", &["1 one", "2 two"]);
    world.redo().expect("a redo");
    check("redone", &["1 one", "2 two", "3 three"]);
    world.undo().expect("an undo");
    world.prompt("instead");
    check("another third", &["1 one", "2 two", "3 instead"]);
    let main = world.state().active;
    // By hand, one, done, two: the fork ends before two.
    world.done(Command::Fork { from: main, at: world.entry(4), name: None });
    check("forked at two", &["1 one"]);
    world.prompt("other two");
    check("its own", &["1 one", "2 other two"]);
    let fork = world.state().active;
    world.done(Command::Branch { from: fork, at: None, name: None });
    check("branched from nothing", &[]);
    world.done(Command::Switch { take: fork });
    let retried = world.start(world.turn_start("retried"), |start| Command::Retry {
        from: fork,
        at: world.entry(4),
        name: None,
        start,
    });
    check("retried", &["1 one", "2 retried"]);
    world.step(retried, AgentState::Waiting, TurnStep::Answered, "again");
    world.prompt("last");
    check("after the retry", &["1 one", "2 retried", "3 last"]);
    world.done(Command::Clear { take: world.state().active });
    check("cleared entries", &["1 one", "2 retried", "3 last"]);
    world.done(Command::Switch { take: main });
    check("the first take", &["1 one", "2 two", "3 instead"]);
    world.done(Command::Branch { from: main, at: Some(world.entry(5)), name: None });
    check("branched after two", &["1 one", "2 two"]);
}

#[test]
fn a_turn_that_is_resumed_after_other_changes_stays_one_turn() {
    let world = World::new();
    let take = world.state().active;
    let turn = world.start(world.turn_start("fails"), |start| Command::StartTurn { take, start });
    let failed = TurnStep::Failed { message: "no network".into() };
    let fault = AgentState::Calling { attempt: 1, steered: false };
    world.step(turn, fault.clone(), failed, "partial");
    assert_eq!(world.turn_names(), ["1 fails"]);
    let state = |world: &World| {
        let reader = world.read();
        let turn = reader.history(world.thread).turns().expect("turns").find("last").expect("a turn");
        (turn.status, turn.operations, turn.entries.len())
    };
    assert_eq!(state(&world), (TurnStatus::Failed, 2, 2));
    world.step(turn, fault, TurnStep::Resumed, "resumed");
    assert_eq!(state(&world), (TurnStatus::Unfinished, 3, 3));
    world.step(turn, AgentState::Waiting, TurnStep::Answered, "done");
    assert_eq!(world.turn_names(), ["1 fails"]);
    assert_eq!(state(&world), (TurnStatus::Finished, 4, 4));
}

#[test]
fn an_undo_goes_back_to_a_turn() {
    let world = World::new();
    for prompt in ["one", "two", "three", "four"] {
        world.prompt(prompt);
        world.done(Command::Rename { title: format!("after {prompt}") });
    }
    let history = |text: &str| world.read().history(world.thread).version_named(text);
    let version = history("turn:2").expect("a turn");
    let undo = || world.timeline.go(world.thread, Goal::UndoTo(Unit::Turn, version), Caller::human());
    let moved = undo().expect("an undo");
    assert_eq!((moved.steps, moved.position), (5, version));
    let reader = world.read();
    let names = reader.history(world.thread).turns_moved(&moved).expect("names");
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["turn 4 \"four\"", "turn 3 \"three\""]);
    assert_eq!(world.turn_names(), ["1 one", "2 two"]);
    undo().expect_err("nothing is after it");
    world.timeline.redo(world.thread, Unit::Turn, 5, Caller::human()).expect("a redo");
    assert_eq!(world.turn_names().len(), 4);
    for (text, expected) in [
        ("turn:9", "it has `turn:1` to `turn:4`"),
        ("turn:0", "it has `turn:1`"),
        ("turn:x", "no turn \"x\""),
        ("nowhere", "not a version"),
    ] {
        let error = history(text).expect_err("nothing has that name");
        assert!(matches!(error, FindError::NoTurn { .. } | FindError::NoVersion(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_turn_has_the_entries_of_all_its_operations() {
    let world = World::new();
    let take = world.state().active;
    let context = vec![world.entry_of("Context", "a file")];
    let start = TurnStart { context, ..world.turn_start("with context") };
    let turn = world.start(start, |start| Command::StartTurn { take, start });
    world.step(turn, AgentState::Waiting, TurnStep::Answered, "an answer");
    let more = vec![world.entry_of("User", "late")];
    world.done(Command::AddEntries { take, at: InsertPosition::End, entries: more });
    let reader = world.read();
    let turn = reader.history(world.thread).turns().expect("turns").find("1").expect("a turn");
    assert_eq!((turn.name.prompt.as_str(), turn.entries.len()), ("with context", 3));
    assert_eq!(turn.entry, Some(world.entry(2)));
    assert_eq!(turn.entries, [world.entry(1), world.entry(2), world.entry(3)]);
}
