//! Logs from before takes had chains, as in older stores and exports: all their operations are steps of the thread.

use std::io::Cursor;

use data_encoding::BASE64;
use retake_model::content::{ContentId, Kind, decode, encode};
use retake_model::entry::EntryVersion;
use retake_model::history::{LogStep, OperationLog, link_change, link_note};
use retake_model::id::{TakeId, TurnId};
use retake_model::operation::{Operation, Version};
use retake_timeline::{
    Caller, Command, Goal, ImportMode, InsertPosition, MoveOptions, Rules, Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;
use serde_json::{Value, json};

use crate::exchange::export;
use crate::support::{FileWorld, PROJECT, World};

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);
const REDO: Goal = Goal::Redo(Unit::Turn, 1);

/// The operations so far, linked as they were then.
struct OldLog(Vec<Operation>);

impl OperationLog for OldLog {
    type Error = std::convert::Infallible;

    fn step(&self, version: Version) -> Result<LogStep, Self::Error> {
        Ok(LogStep::of(&self.0[version as usize - 1]))
    }

    fn active(&self, _: Version) -> Result<TakeId, Self::Error> {
        unreachable!("how a change is linked does not depend on it")
    }
}

/// The same export as an older program without chains wrote it. It has changes and notes, but no moves.
fn without_chains(export: &[u8]) -> Vec<u8> {
    let mut log = OldLog(Vec::new());
    let mut text = String::new();
    for line in std::str::from_utf8(export).expect("text").lines() {
        let mut value: Value = serde_json::from_str(line).expect("a line of JSON");
        if value.get("end").is_some() {
            break;
        }
        if value.get("operation").is_some() {
            let bytes = BASE64.decode(value["data"].as_str().expect("text").as_bytes()).expect("base64");
            let mut operation: Operation = decode(&bytes).expect("an operation");
            let head = log.0.len() as Version;
            if let Some(last) = log.0.last() {
                operation.previous = Some(ContentId::of(Kind::Operation, &encode(last)));
                let linked = if operation.kind.is_not_undoable() {
                    link_note(&log, head)
                } else {
                    link_change(&log, head, None)
                };
                let Ok((place, _)) = linked;
                (operation.place, operation.chains) = (place, None);
            }
            value = json!({"operation": head + 1, "data": BASE64.encode(&encode(&operation))});
            log.0.push(operation);
        }
        text.extend([&value.to_string(), "\n"]);
    }
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let end = json!({"end": true, "lines": text.lines().count(), "digest": digest});
    text.extend([&end.to_string(), "\n"]);
    text.into_bytes()
}

/// The same thread in another store, with an old log.
fn as_before_chains(world: FileWorld) -> FileWorld {
    let bytes = without_chains(&export(&world.world.timeline, world.world.thread));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("a new store");
    let imported = timeline.import(Cursor::new(bytes), PROJECT, ImportMode::Same, |_, _| {});
    let thread = imported.expect("an older export").thread;
    FileWorld::beside(World { folder, timeline, thread }, world.root)
}

/// Three turns, each with an entry and a file.
fn three_turns() -> FileWorld {
    let world = FileWorld::new();
    for name in ["one", "two", "three"] {
        turn(&world, name);
    }
    world
}

/// An entry and a file in one turn.
fn turn(world: &FileWorld, name: &str) {
    let entry = EntryVersion::from_text("User", name, world.world.timeline.now());
    let turn = TurnId::generate(&mut world.world.timeline.fresh());
    let caller = || Caller { turn: Some(turn), ..Caller::human() };
    let take = world.world.state().active;
    let command = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
    world.world.timeline.change(world.world.thread, command, caller()).expect("a change");
    world.write(name, name);
    world.working_copy.record_as_caller(world.world.thread, caller()).expect("a record");
}

fn agree(world: &FileWorld, names: &[&str]) {
    assert_eq!(world.world.texts(), names);
    let mut files: Vec<String> = world.files().into_keys().collect();
    let mut expected: Vec<&str> = names.to_vec();
    files.sort();
    expected.sort_unstable();
    assert_eq!(files, expected);
}

#[test]
fn undo_and_redo_move_entries_and_files_of_an_old_log_together() {
    let world = as_before_chains(three_turns());
    agree(&world, &["one", "two", "three"]);
    world.go(UNDO);
    agree(&world, &["one", "two"]);
    world.go(Goal::Undo(Unit::Turn, 2));
    agree(&world, &[]);
    world.go(REDO);
    agree(&world, &["one"]);
    world.go(Goal::Redo(Unit::Turn, 2));
    agree(&world, &["one", "two", "three"]);
}

#[test]
fn a_jump_in_an_old_log_moves_entries_and_files_together() {
    let before = three_turns();
    let log = before.world.read();
    let history = log.history(before.world.thread).list(None, 20).expect("a history");
    let last = history[0].version;
    drop(log);
    let world = as_before_chains(before);
    world.go(Goal::Jump(last - 2));
    agree(&world, &["one", "two"]);
    world.go(Goal::Jump(last));
    agree(&world, &["one", "two", "three"]);
}

#[test]
fn an_old_log_continues_with_chains_and_both_parts_undo_and_redo() {
    let world = as_before_chains(three_turns());
    turn(&world, "four");
    world.world.done(Command::Rename { title: "Renamed".to_owned() });
    world.go(Goal::Undo(Unit::Turn, 3));
    agree(&world, &["one", "two"]);
    assert_ne!(world.world.state().title, "Renamed");
    world.go(Goal::Redo(Unit::Turn, 3));
    agree(&world, &["one", "two", "three", "four"]);
    assert_eq!(world.world.state().title, "Renamed");
}

#[test]
fn steps_of_an_old_log_are_not_undone_across_a_worktree() {
    let before = three_turns();
    let main = before.world.state().active;
    before.world.done(Command::Branch { from: main, at: None, name: Some("other".to_owned()) });
    let other = before.world.state().active;
    before.world.say("User", "of the other");
    before.world.done(Command::Switch { take: main });
    let world = as_before_chains(before);
    let thread = world.world.thread;
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("worktree");
    let opened =
        world.working_copy.open_worktree(thread, other, &place, &Caller::human()).expect("a worktree");
    let known = world.world.read().worktrees().at(&opened.path).expect("a reader").expect("a known worktree");
    let workspace = Workspace::of(&opened.path).expect("a folder");
    let worktree = WorkingCopy::at_worktree(world.world.timeline.clone(), &known, workspace);

    let refused = worktree.go(thread, UNDO, Caller::human(), MoveOptions::default());
    assert!(refused.is_err(), "the steps may be any take's: {refused:?}");
    let texts = || {
        let reader = world.world.read();
        let take = world.world.state().take(&reader.queries(), other).expect("readable").expect("a take");
        world.world.texts_of(&take)
    };
    let before = texts();
    let _ = world.try_go(Goal::Undo(Unit::Turn, 2), MoveOptions::default());
    let _ = world.try_go(Goal::Undo(Unit::Turn, 2), MoveOptions::default());
    assert_eq!(texts(), before, "an undo in the project's folder does not reach into the worktree");
    agree(&world, &["one", "two", "three"]);
}
