//! Undo belongs to a take: concurrent changes of other takes are neither undone nor split.

use retake_model::agent::AgentState;
use retake_model::command::{Prompt, TurnAdvance, TurnStart};
use retake_model::entry::EntryVersion;
use retake_model::id::{TakeId, TurnId};
use retake_model::operation::{Actor, TurnStep};
use retake_timeline::{Caller, Command, Goal, InsertPosition, MoveOptions, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;
use tempfile::TempDir;

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);
const REDO: Goal = Goal::Redo(Unit::Turn, 1);

/// A thread with two takes: one in the project's folder, one in a worktree.
struct TwoTakes {
    world: FileWorld,
    main: TakeId,
    other: TakeId,
    worktree: WorkingCopy,
    folder: TempDir,
}

impl TwoTakes {
    fn new() -> Self {
        let world = FileWorld::new();
        world.write("shared", "as it was\n");
        world.record_changes();
        world.world.say("User", "first");
        let main = world.world.state().active;
        world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
        let other = world.world.state().active;
        world.change(Command::Switch { take: main });
        let folder = tempfile::tempdir().expect("a folder");
        let opened = world
            .working_copy
            .open_worktree(world.world.thread, other, &folder.path().join("worktree"), &Caller::human())
            .expect("a worktree");
        let known =
            world.world.read().worktrees().at(&opened.path).expect("a reader").expect("a known worktree");
        let workspace = Workspace::of(&opened.path).expect("a folder");
        let worktree = WorkingCopy::at_worktree(world.world.timeline.clone(), &known, workspace);
        Self { world, main, other, worktree, folder }
    }

    fn start(&self, take: TakeId, turn: TurnId, text: &str) {
        self.start_setting(take, turn, text, &[]);
    }

    fn start_setting(&self, take: TakeId, turn: TurnId, text: &str, settings: &[(&str, &str)]) {
        let prompt = EntryVersion::from_text("User", text, self.world.world.timeline.now());
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let start = TurnStart {
            turn,
            context: Vec::new(),
            prompt: Prompt::Entry(prompt.into()),
            settings: settings.collect(),
            sent: None,
        };
        self.change(Command::StartTurn { take, start }, turn);
    }

    fn answer(&self, take: TakeId, turn: TurnId, text: &str, state: AgentState) {
        let entry = EntryVersion::from_text("AI", text, self.world.world.timeline.now());
        let advance = TurnAdvance {
            turn,
            entries: vec![entry.into()],
            settings: Vec::new(),
            state,
            step: TurnStep::Answered,
        };
        self.change(Command::AdvanceTurn { take, advance }, turn);
    }

    fn change(&self, command: Command, turn: TurnId) {
        let caller = Caller { turn: Some(turn), actor: Actor::Agent, ..Caller::human() };
        let world = &self.world.world;
        world.timeline.change(world.thread, command, caller).expect("a step that is allowed");
    }

    /// Records the changes of a program in a folder, in the given turn or a new one.
    fn record(&self, working_copy: &WorkingCopy, turn: Option<TurnId>) {
        let caller = Caller { turn, actor: Actor::Agent, ..Caller::human() };
        working_copy.record_as_caller(self.world.world.thread, caller).expect("a record");
    }

    fn go(&self, working_copy: &WorkingCopy, goal: Goal) {
        working_copy
            .go(self.world.world.thread, goal, Caller::human(), MoveOptions::default())
            .expect("a move");
    }

    fn texts(&self, take: TakeId) -> Vec<String> {
        let (world, reader) = (&self.world.world, self.world.world.read());
        let take = world.state().take(&reader.queries(), take).expect("readable").expect("a take");
        world.texts_of(&take)
    }

    fn in_worktree(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("worktree").join(name)
    }

    fn model(&self) -> Option<String> {
        let (world, reader) = (&self.world.world, self.world.world.read());
        world.state().own_settings(&reader.queries()).expect("settings").model
    }

    fn runs(&self, take: TakeId) -> bool {
        let (world, reader) = (&self.world.world, self.world.world.read());
        let take = world.state().take(&reader.queries(), take).expect("readable").expect("a take");
        take.agent.is_some_and(|agent| agent.state.is_running())
    }
}

fn turn(number: u8) -> TurnId {
    TurnId::from_bytes([number; 16])
}

fn calling() -> AgentState {
    AgentState::Calling { attempt: 1, steered: false }
}

#[test]
fn an_undo_in_a_worktree_does_not_affect_a_turn_in_the_project() {
    let takes = TwoTakes::new();
    takes.start(takes.other, turn(1), "in the worktree");
    takes.start(takes.main, turn(2), "in the project");
    takes.world.write("project", "of the running turn\n");
    takes.record(&takes.world.working_copy, Some(turn(2)));
    std::fs::write(takes.in_worktree("there"), "of the worktree\n").expect("a file");
    takes.record(&takes.worktree, Some(turn(1)));
    takes.answer(takes.other, turn(1), "done there", AgentState::Waiting);
    takes.answer(takes.main, turn(2), "still at it", calling());

    takes.go(&takes.worktree, UNDO);
    assert_eq!(takes.texts(takes.other), ["first"]);
    assert!(!takes.in_worktree("there").exists());
    assert_eq!(takes.texts(takes.main), ["first", "in the project", "still at it"]);
    assert_eq!(takes.world.read("project").as_deref(), Some("of the running turn\n"));
    assert!(takes.runs(takes.main));
    takes.answer(takes.main, turn(2), "goes on", calling());

    takes.go(&takes.worktree, REDO);
    assert_eq!(takes.texts(takes.other), ["first", "in the worktree", "done there"]);
    assert_eq!(std::fs::read_to_string(takes.in_worktree("there")).expect("a file"), "of the worktree\n");
    assert_eq!(takes.texts(takes.main).last().map(String::as_str), Some("goes on"));
}

#[test]
fn an_interleaved_turn_is_undone_completely_with_its_files() {
    let takes = TwoTakes::new();
    takes.start(takes.main, turn(1), "one");
    takes.start(takes.other, turn(2), "two");
    takes.world.write("a", "first file\n");
    takes.record(&takes.world.working_copy, Some(turn(1)));
    std::fs::write(takes.in_worktree("b"), "theirs\n").expect("a file");
    takes.record(&takes.worktree, Some(turn(2)));
    takes.answer(takes.main, turn(1), "answer", calling());
    takes.world.write("c", "second file\n");
    takes.record(&takes.world.working_copy, Some(turn(1)));
    takes.answer(takes.other, turn(2), "their answer", AgentState::Waiting);
    takes.answer(takes.main, turn(1), "the end", AgentState::Waiting);

    takes.go(&takes.world.working_copy, UNDO);
    assert_eq!(takes.texts(takes.main), ["first"]);
    assert_eq!(takes.world.files().into_keys().collect::<Vec<_>>(), ["shared"]);
    assert_eq!(takes.texts(takes.other), ["first", "two", "their answer"]);
    assert!(takes.in_worktree("b").exists());
    takes.go(&takes.world.working_copy, REDO);
    assert_eq!(takes.texts(takes.main), ["first", "one", "answer", "the end"]);
    assert_eq!(takes.world.files().into_keys().collect::<Vec<_>>(), ["a", "c", "shared"]);
}

#[test]
fn a_command_during_a_turn_does_not_split_it() {
    let takes = TwoTakes::new();
    takes.start(takes.main, turn(1), "one");
    takes.world.write("a", "of the program\n");
    takes.record(&takes.world.working_copy, Some(turn(9)));
    takes.answer(takes.main, turn(1), "the end", AgentState::Waiting);
    takes.go(&takes.world.working_copy, UNDO);
    assert_eq!(takes.texts(takes.main), ["first"]);
    assert_eq!(takes.world.read("a"), None);
}

#[test]
fn thread_steps_are_undone_from_any_take_and_take_steps_only_from_theirs() {
    let takes = TwoTakes::new();
    let world = &takes.world.world;
    world.done(Command::Rename { title: "Renamed".to_owned() });
    takes.go(&takes.worktree, UNDO);
    assert_ne!(world.state().title, "Renamed");
    takes.go(&takes.worktree, REDO);
    assert_eq!(world.state().title, "Renamed");
    // A branch in the project's folder is undone there.
    world.done(Command::Branch { from: takes.main, at: None, name: Some("third".to_owned()) });
    let entry = EntryVersion::from_text("User", "theirs", world.timeline.now());
    world.done(Command::AddEntries {
        take: takes.other,
        at: InsertPosition::End,
        entries: vec![entry.into()],
    });
    takes.go(&takes.worktree, UNDO);
    assert_eq!(takes.texts(takes.other), ["first"]);
    assert!(world.take_names().contains(&"third".to_owned()));
    let again = takes.worktree.go(world.thread, UNDO, Caller::human(), MoveOptions::default());
    assert!(again.is_err(), "nothing else of the worktree can be undone from there: {again:?}");
    assert!(world.take_names().contains(&"third".to_owned()));
}

#[test]
fn the_settings_of_a_turn_are_undone_and_redone_with_it() {
    let takes = TwoTakes::new();
    let before = takes.world.world.state();
    takes.start_setting(takes.main, turn(1), "with a setting", &[("model", "first")]);
    takes.answer(takes.main, turn(1), "answer", AgentState::Waiting);
    let after = takes.world.world.state();
    takes.go(&takes.world.working_copy, UNDO);
    assert_eq!(takes.world.world.state(), before);
    takes.go(&takes.world.working_copy, REDO);
    assert_eq!(takes.world.world.state(), after);
    assert_eq!(takes.model().as_deref(), Some("first"));
}

#[test]
fn undoing_another_turn_keeps_the_settings_of_this_one() {
    let takes = TwoTakes::new();
    takes.start_setting(takes.main, turn(1), "with a setting", &[("model", "first")]);
    takes.answer(takes.main, turn(1), "answer", AgentState::Waiting);
    takes.world.world.done(Command::Rename { title: "Renamed".to_owned() });
    takes.go(&takes.world.working_copy, UNDO);
    assert_ne!(takes.world.world.state().title, "Renamed");
    assert_eq!(takes.model().as_deref(), Some("first"));
    assert_eq!(takes.texts(takes.main), ["first", "with a setting", "answer"]);
}

#[test]
fn an_undo_in_another_take_keeps_the_settings_of_a_running_turn() {
    let takes = TwoTakes::new();
    takes.start(takes.main, turn(1), "in the project");
    takes.answer(takes.main, turn(1), "answer", AgentState::Waiting);
    takes.start_setting(takes.other, turn(2), "with a setting", &[("model", "second")]);
    takes.go(&takes.world.working_copy, UNDO);
    assert_eq!(takes.model().as_deref(), Some("second"));
    assert_eq!(takes.texts(takes.main), ["first"]);
    assert!(takes.runs(takes.other));
    takes.go(&takes.worktree, UNDO);
    assert_eq!(takes.model(), None);
    takes.go(&takes.world.working_copy, REDO);
    assert_eq!(takes.model(), None, "the setting is redone with its turn");
    assert_eq!(takes.texts(takes.main), ["first", "in the project", "answer"]);
    takes.go(&takes.worktree, REDO);
    assert_eq!(takes.model().as_deref(), Some("second"));
    assert_eq!(takes.texts(takes.other), ["first", "with a setting"]);
}

#[test]
fn a_move_in_a_worktree_briefly_blocks_other_takes() {
    let takes = TwoTakes::new();
    for number in 0..20 {
        std::fs::write(takes.in_worktree(&format!("there-{number}")), "of the worktree\n").expect("a file");
    }
    takes.record(&takes.worktree, Some(turn(1)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..8 {
                takes.go(&takes.worktree, UNDO);
                takes.go(&takes.worktree, REDO);
            }
        });
        for number in 0..16 {
            takes.world.write(&format!("here-{number}"), "of the project\n");
            takes.record(&takes.world.working_copy, None);
            takes.go(&takes.world.working_copy, UNDO);
            takes.go(&takes.world.working_copy, REDO);
        }
    });
    assert_eq!(takes.world.files().len(), 17);
    assert!(takes.in_worktree("there-19").exists());
}
