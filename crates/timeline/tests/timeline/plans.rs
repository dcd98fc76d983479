//! Plans: a preview changes nothing, and executing it has exactly the previewed effect.

use std::collections::BTreeMap;
use std::path::Path;

use retake_model::id::{EntryId, ProjectId, TurnId};
use retake_model::operation::Actor;
use retake_model::path::RootPath;
use retake_timeline::{
    Caller, Command, FileError, Goal, MoveOptions, NewThread, Outcome, Plan, PlanRequest, Scope, Unit,
};

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);

fn plan(world: &FileWorld, request: PlanRequest) -> Plan {
    let plan = world.working_copy.plan(world.world.thread, request, Caller::human(), MoveOptions::default());
    plan.expect("a plan")
}

/// Adds an entry of the user.
fn say(world: &FileWorld) -> EntryId {
    world.world.say("user", "Say it");
    world.world.entry(1)
}

/// Each file of a folder with its length.
fn lengths(folder: &Path) -> BTreeMap<std::path::PathBuf, u64> {
    let mut found = BTreeMap::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let file = file.expect("a file");
        let metadata = file.metadata().expect("its metadata");
        if metadata.is_dir() {
            found.extend(lengths(&file.path()));
        } else {
            found.insert(file.path(), metadata.len());
        }
    }
    found
}

#[test]
fn a_preview_shows_manual_edits_without_recording_them() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1\n"));
    let before = world.world.read().head(world.world.thread).expect("a head").id;
    let known = world.working_copy.status(10).expect("a status").last;
    world.write("mine", "by hand\n");
    // More than fits into memory, which an ordinary snapshot writes to the store at once.
    world.write("long", &"0123456789abcdef".repeat(200_000));
    let store = lengths(world.world.folder.path());
    let plan = plan(&world, PlanRequest::Move(UNDO));
    let preview = plan.preview();
    let unrecorded: Vec<String> = preview.unrecorded.iter().map(|path| path.path.to_string()).collect();
    assert_eq!(unrecorded, ["long", "mine"]);
    let report = preview.files.as_ref().expect("files");
    assert_eq!(report.paths.len(), 1, "{report:?}");
    assert_eq!(report.paths[0].outcome, Outcome::Removed);
    assert_eq!(world.world.read().head(world.world.thread).expect("a head").id, before);
    assert_eq!(world.working_copy.status(10).expect("a status").last, known);
    assert_eq!(lengths(world.world.folder.path()), store, "no file of the store has grown");
    let done = plan.execute().expect("an undo");
    assert!(done.moved.is_some());
    assert_eq!(world.read("a"), None);
    assert_eq!(world.read("mine").as_deref(), Some("by hand\n"));
}

#[test]
fn an_unrecorded_file_is_read_without_storing_it() {
    let world = FileWorld::new();
    world.write("a", "one\n");
    world.agent(|world| world.write("a", "two\n"));
    world.write("a", "mine\n");
    // So much that the bytes of files are read again from the folder.
    for number in 0..30 {
        world.write(&format!("long{number}"), &format!("{number}").repeat(100_000));
    }
    world.write("large", &"0123456789abcdef".repeat(300_000));
    let store = lengths(world.world.folder.path());
    let report = plan(&world, PlanRequest::Move(UNDO)).preview().files.clone().expect("files");
    assert!(matches!(report.paths[0].outcome, Outcome::Conflicted { theirs: Some(_), .. }), "{report:?}");
    let reader = world.world.read();
    assert!(!reader.files(world.world.thread).has_snapshot(report.before).expect("an answer"));
    let read = |name: &str, most| {
        let path = RootPath { root: String::new(), path: name.parse().expect("a path") };
        let piece = world.working_copy.current_file(&path, most).expect("a reader");
        piece.map(|piece| String::from_utf8(piece.bytes).expect("text"))
    };
    assert_eq!(read("a", 100).as_deref(), Some("mine\n"));
    assert_eq!(read("long7", 3).as_deref(), Some("777"));
    assert_eq!(read("gone", 3), None);
    assert_eq!(read("large", 3).as_deref(), Some(""));
    assert_eq!(lengths(world.world.folder.path()), store, "no file of the store has grown");
}

#[test]
fn a_preview_merges_unrecorded_manual_edits() {
    let world = FileWorld::new();
    let text = |first: &str, last: &str| format!("{first}\n{}{last}\n", "line\n".repeat(20));
    world.write("a", &text("one", "end"));
    world.agent(|world| world.write("a", &text("two", "end")));
    world.write("a", &text("two", "changed"));
    // So much that the bytes of the file are read again from the folder.
    for number in 0..30 {
        world.write(&format!("long{number}"), &format!("{number}").repeat(100_000));
    }
    let plan = plan(&world, PlanRequest::Move(UNDO));
    let report = plan.preview().files.clone().expect("files");
    assert_eq!(report.paths[0].outcome, Outcome::Merged, "{report:?}");
    plan.execute().expect("an undo");
    assert_eq!(world.read("a").as_deref(), Some(text("one", "changed").as_str()));
}

#[test]
fn a_plan_is_executed_as_it_was_shown_or_not_at_all() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1\n"));
    let files = plan(&world, PlanRequest::Move(UNDO));
    world.write("a", "mine\n");
    assert!(matches!(files.execute(), Err(FileError::PlanOutdated)));
    assert_eq!(world.read("a").as_deref(), Some("mine\n"));
    let thread = plan(&world, PlanRequest::Move(UNDO));
    world.world.done(Command::Rename { title: "Other".to_owned() });
    assert!(matches!(thread.execute(), Err(FileError::PlanOutdated)));
}

#[test]
fn the_preview_of_a_switch_matches_it_with_manual_edits() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1\n"));
    world.change(Command::Branch { from: main, at: None, name: None });
    world.agent(|world| world.write("a", "2\n"));
    world.write("mine", "by hand\n");
    let plan = plan(&world, PlanRequest::Change(Command::Switch { take: main }));
    let shown = plan.preview().files.clone().expect("files").paths;
    let done = plan.execute().expect("a switch").files.expect("files").paths;
    assert_eq!(shown, done);
    assert_eq!(world.read("mine"), None, "what was made by hand in the other take stays with that take");
    assert_eq!(world.world.state().active, main);
}

#[test]
fn a_preview_of_a_switch_without_files_switches_nothing() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: None, name: None });
    let head = world.world.read().head(world.world.thread).expect("a head").id;
    let move_options = MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() };
    let request = PlanRequest::Change(Command::Switch { take: main });
    let plan =
        world.working_copy.plan(world.world.thread, request, Caller::human(), move_options).expect("a plan");
    assert!(plan.preview().kind.is_some());
    assert_ne!(world.world.state().active, main);
    assert_eq!(world.world.read().head(world.world.thread).expect("a head").id, head);
}

#[test]
fn the_first_undo_reverts_files_of_a_crashed_tool() {
    let world = FileWorld::new();
    let new =
        NewThread { title: Some("Second".to_owned()), ..NewThread::in_project(crate::support::PROJECT) };
    let thread = world.world.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    let turn = TurnId::generate(&mut world.world.timeline.fresh());
    let caller = Caller { actor: Actor::Agent, turn: Some(turn), ..Caller::human() };
    let alive = world.world.timeline.store().lock_alive(turn).expect("a liveness lock");
    world.working_copy.mark_running(thread, caller, turn, None).expect("it begins");
    assert!(world.world.read().head(thread).expect("a head").operation.last_file_operation.is_none());
    world.write("made", "by the tool\n");
    let refused = world.working_copy.go(thread, UNDO, Caller::human(), MoveOptions::default());
    assert!(matches!(refused, Err(FileError::Running(_))), "{refused:?}");
    drop(alive);
    let request = PlanRequest::Move(UNDO);
    let shown =
        world.working_copy.plan(thread, request, Caller::human(), MoveOptions::default()).expect("a plan");
    assert_eq!(shown.preview().files.as_ref().expect("files").paths[0].outcome, Outcome::Removed);
    world.working_copy.go(thread, UNDO, Caller::human(), MoveOptions::default()).expect("an undo");
    assert_eq!(world.read("made"), None);
}

#[test]
fn a_folder_never_gets_the_files_of_a_thread_of_another_project() {
    let world = FileWorld::new();
    let elsewhere = ProjectId::from_bytes([9; 16]);
    let other = world.world.timeline.create_thread(NewThread::in_project(elsewhere), Caller::human());
    let other = other.expect("a thread").thread;
    world.write("a", "1\n");
    let wrong = |error: &FileError| matches!(error, FileError::WrongFolder { .. });
    let looked = world.working_copy.record_changes(other, Caller::human()).expect_err("it is refused");
    assert!(wrong(&looked), "{looked}");
    let move_options = MoveOptions { scope: Scope::Files, ..MoveOptions::default() };
    let moved = world.working_copy.go(other, UNDO, Caller::human(), move_options).expect_err("it is refused");
    assert!(wrong(&moved), "{moved}");
}

#[test]
fn a_fork_while_a_turn_runs_stays_in_the_background_with_the_files_of_its_entry() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1\n"));
    let entry = say(&world);
    world.agent(|world| world.write("a", "2\n"));
    let running = world.world.timeline.store().lease_turn(main).expect("a lease").expect("a free lease");
    for command in [
        Command::Fork { from: main, at: entry, name: Some("forked".to_owned()) },
        Command::Branch { from: main, at: Some(entry), name: Some("branched".to_owned()) },
    ] {
        let shown = plan(&world, PlanRequest::Change(command.clone()));
        assert!(shown.preview().files.is_none());
        let done = world.change(command).done.expect("it is made");
        assert_eq!(done.summary.active.id, main, "the turn goes on where it is");
    }
    assert_eq!(world.read("a").as_deref(), Some("2\n"), "and so do its files");
    let switch = |take| world.world.change(Command::Switch { take });
    let reader = world.world.read();
    let row = reader.thread(world.world.thread).expect("a thread");
    let takes = reader.queries().takes_of(row.number).expect("takes");
    let forked = takes.iter().find(|take| take.summary.name == "forked").expect("it").summary.id;
    assert!(switch(forked).is_err(), "no take becomes the active one while a turn runs in another");
    drop(running);
    world.change(Command::Switch { take: forked });
    assert_eq!(world.read("a").as_deref(), Some("1\n"));
}

#[test]
fn a_promoted_take_keeps_its_files_and_forks_have_the_files_of_their_entry() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1\n"));
    let entry = say(&world);
    world.agent(|world| world.write("a", "2\n"));
    world.change(Command::Branch { from: main, at: None, name: Some("second".to_owned()) });
    world.agent(|world| world.write("a", "3\n"));
    let promoted = world.working_copy.promote(world.world.thread, main, None, Caller::human(), Scope::Both);
    let thread = promoted.expect("a promotion").promoted.thread;
    let reader = world.world.read();
    let files = reader.files(thread).of_take(main).expect("files").expect("it has its files");
    assert!(reader.files(thread).has_snapshot(files).expect("a reader"));
    drop(reader);
    world
        .working_copy
        .restore(thread, files, &[], Caller::human(), MoveOptions::default())
        .expect("a restore");
    assert_eq!(world.read("a").as_deref(), Some("2\n"));
    let fork = Command::Fork { from: main, at: entry, name: None };
    world.working_copy.change(thread, fork, Caller::human(), MoveOptions::default()).expect("a fork");
    assert_eq!(world.read("a").as_deref(), Some("1\n"));
}

#[test]
fn a_fork_of_an_inactive_take_has_the_files_of_its_entry() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1\n"));
    let entry = say(&world);
    world.agent(|world| world.write("a", "2\n"));
    world.change(Command::Branch { from: main, at: None, name: Some("second".to_owned()) });
    world.agent(|world| world.write("a", "3\n"));
    world.change(Command::Fork { from: main, at: entry, name: None });
    assert_eq!(world.read("a").as_deref(), Some("1\n"));
}

#[test]
fn files_only_moves_do_not_change_takes() {
    let world = FileWorld::new();
    world.world.say("User", "one");
    world.agent(|world| world.write("a", "1"));
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    let branch = world.world.state().active;
    let version = || world.world.read().head(world.world.thread).expect("a head").operation.version;
    let (before, only) = (version(), MoveOptions { scope: Scope::Files, ..MoveOptions::default() });
    let entry = world.world.entry(1);
    for command in [
        Command::Switch { take: main },
        Command::Branch { from: main, at: Some(entry), name: None },
        Command::Fork { from: main, at: entry, name: None },
        Command::DeleteTake { take: branch },
    ] {
        let changed = world.working_copy.change(world.world.thread, command, Caller::human(), only);
        assert!(matches!(changed, Err(FileError::FilesOnlyUnsupported)));
    }
    assert_eq!(version(), before, "nothing was changed");
}
