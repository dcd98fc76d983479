//! Files after an import: a thread that it continued has the files of each take, and a copy leaves those of the original.

use std::fs;
use std::io::Cursor;

use retake_model::id::{TakeId, ThreadId};
use retake_timeline::{
    Caller, Command, FileError, Goal, ImportMode, MoveOptions, SharedChanges, Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;
use tempfile::TempDir;

use crate::exchange::{elsewhere, export};
use crate::support::{FileWorld, PROJECT};

/// Another machine with a folder of its own.
struct Machine {
    _store: TempDir,
    folder: TempDir,
    timeline: Timeline,
    working_copy: WorkingCopy,
    thread: ThreadId,
}

impl Machine {
    fn new(thread: ThreadId) -> Self {
        let (store, timeline) = elsewhere();
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::of(folder.path()).expect("a folder");
        let working_copy = WorkingCopy::at(timeline.clone(), PROJECT, workspace);
        Self { _store: store, folder, timeline, working_copy, thread }
    }

    fn import(&self, bytes: Vec<u8>) -> Option<u64> {
        let imported = self.timeline.import(Cursor::new(bytes), PROJECT, ImportMode::Same, |_, _| {});
        imported.expect("an import").jump_to
    }

    fn switch(&self, take: TakeId) {
        let switch = Command::Switch { take };
        self.working_copy
            .change(self.thread, switch, Caller::human(), MoveOptions::default())
            .expect("a switch");
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }
}

fn turn(world: &FileWorld, name: &str) {
    world.world.say("User", name);
    world.agent(|world| world.write(name, name));
}

/// `main` with the file `a`, and `B` with `a` and `b`, on both machines, with `main` active.
fn two_machines() -> (FileWorld, Machine, [TakeId; 2]) {
    let world = FileWorld::new();
    let main = world.world.state().active;
    turn(&world, "a");
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: Some("B".to_owned()) });
    let branch = world.world.state().active;
    turn(&world, "b");
    world.change(Command::Switch { take: main });
    let other = Machine::new(world.world.thread);
    other.import(export(&world.world.timeline, world.world.thread));
    fs::write(other.folder.path().join("a"), "a").expect("a file");
    fs::write(other.folder.path().join("mine"), "of this machine").expect("a file");
    other.working_copy.record_changes(other.thread, Caller::human()).expect("a reader");
    (world, other, [main, branch])
}

#[test]
fn switching_after_a_continued_import_brings_the_files_of_the_take() {
    let (world, other, [main, branch]) = two_machines();
    // The other machine works in both takes, and ends in the branch.
    turn(&world, "c");
    world.change(Command::Switch { take: branch });
    turn(&world, "d");
    let jump_to = other.import(export(&world.world.timeline, world.world.thread));
    assert_eq!(other.files(), ["a", "mine"]);
    // The thread is where it was before the import, and so are the files of both takes.
    other.switch(branch);
    assert_eq!(other.files(), ["a", "b", "mine"]);
    other.switch(main);
    assert_eq!(other.files(), ["a", "mine"]);
    let target = Goal::Jump(jump_to.expect("a version to jump to"));
    other.working_copy.go(other.thread, target, Caller::human(), MoveOptions::default()).expect("a jump");
    assert_eq!(other.files(), ["a", "b", "d", "mine"]);
    other.switch(main);
    assert_eq!(other.files(), ["a", "c", "mine"]);
    other.switch(branch);
    assert_eq!(other.files(), ["a", "b", "d", "mine"]);
}

#[test]
fn imported_versions_never_mix_conversation_and_files_of_two_machines() {
    let (world, other, [main, branch]) = two_machines();
    world.change(Command::Switch { take: branch });
    turn(&world, "c");
    other.import(export(&world.world.timeline, world.world.thread));
    let newest =
        other.timeline.read().expect("a reader").head(other.thread).expect("a head").operation.version;
    let there = world.world.read().head(other.thread).expect("a head").operation.version;
    for version in there..=newest {
        let jump = Goal::Jump(version);
        other.working_copy.go(other.thread, jump, Caller::human(), MoveOptions::default()).expect("a jump");
        let active = other.timeline.read().expect("a reader").state(other.thread).expect("a state").active;
        let expected: &[&str] = if active == main { &["a", "mine"] } else { &["a", "b", "c", "mine"] };
        assert_eq!(other.files(), expected, "version {version}");
    }
}

#[test]
fn a_take_added_by_an_import_has_its_own_files() {
    let (world, other, [main, _]) = two_machines();
    turn(&world, "c");
    world.change(Command::Branch { from: main, at: None, name: Some("C".to_owned()) });
    let new = world.world.state().active;
    turn(&world, "d");
    world.change(Command::Switch { take: main });
    turn(&world, "e");
    let jump_to = other.import(export(&world.world.timeline, world.world.thread));
    assert_eq!(other.files(), ["a", "mine"]);
    let target = Goal::Jump(jump_to.expect("a version to jump to"));
    other.working_copy.go(other.thread, target, Caller::human(), MoveOptions::default()).expect("a jump");
    assert_eq!(other.files(), ["a", "c", "e", "mine"]);
    other.switch(new);
    assert_eq!(other.files(), ["a", "c", "d", "mine"]);
    other.switch(main);
    assert_eq!(other.files(), ["a", "c", "e", "mine"]);
}

#[test]
fn an_undo_in_a_copy_asks_before_it_reverts_the_work_of_the_original() {
    let world = FileWorld::new();
    turn(&world, "a");
    let (bytes, timeline) = (export(&world.world.timeline, world.world.thread), &world.world.timeline);
    let copy = timeline.import(Cursor::new(bytes.clone()), PROJECT, ImportMode::Copy, |_, _| {});
    let copy = copy.expect("a copy").thread;
    world.agent_of(copy, |world| world.write("b", "of the copy"));
    let undo =
        |move_options| world.working_copy.go(copy, Goal::Undo(Unit::Turn, 1), Caller::human(), move_options);
    undo(MoveOptions::default()).expect("an undo of its own work");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["a"]);
    let refused = undo(MoveOptions::default()).expect_err("the original has the same change");
    assert!(matches!(&refused, FileError::SharedChanges(paths) if paths.len() == 1), "{refused}");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["a"]);
    undo(MoveOptions { shared: SharedChanges::Undo, ..MoveOptions::default() }).expect("it was asked for");
    assert!(world.files().is_empty());

    // In a project without the original, a copy has its changes alone.
    let other = Machine::new(world.world.thread);
    let copy = other.timeline.import(Cursor::new(bytes), PROJECT, ImportMode::Copy, |_, _| {});
    let copy = copy.expect("a copy").thread;
    fs::write(other.folder.path().join("a"), "a").expect("a file");
    let undo =
        other.working_copy.go(copy, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default());
    undo.expect("an undo");
    assert!(other.files().is_empty());
}
