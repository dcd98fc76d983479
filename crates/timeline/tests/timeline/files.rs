//! Conversation and files move together.

use std::cell::RefCell;
use std::collections::BTreeMap;

use retake_model::id::{EntryId, TakeId};
use retake_model::operation::{Actor, OperationKind};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_timeline::{
    Caller, ChangeError, Command, Detail, DiffOptions, FileError, Goal, MoveOptions, NewThread, Outcome,
    Scope, Unit,
};

use crate::support::{FileWorld, PROJECT, outcome};

pub(crate) fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);

#[test]
fn one_undo_reverts_the_agent_and_keeps_manual_edits() {
    let world = FileWorld::new();
    world.write("kept.txt", "as it was\n");
    world.write("code.rs", "one\ntwo\nthree\nfour\nfive\n");
    world.write("gone/deep.txt", "precious\n");
    let before = world.agent(|_| {}).version;
    world.agent(|world| {
        world.write("code.rs", "one\nTWO\nthree\nfour\nfive\n");
        world.write("new/file.txt", "by the agent\n");
        world.remove("gone");
    });
    // Manual edits after the agent: another line of the same file, and a new file.
    world.write("code.rs", "one\nTWO\nthree\nfour\nfive\nsix\n");
    world.write("mine.txt", "by hand\n");
    let report = world.undo();
    let expected = files(&[
        ("code.rs", "one\ntwo\nthree\nfour\nfive\nsix\n"),
        ("gone/deep.txt", "precious\n"),
        ("kept.txt", "as it was\n"),
        ("mine.txt", "by hand\n"),
    ]);
    assert_eq!(world.files(), expected);
    assert_eq!(outcome(&report, "code.rs"), &Outcome::Merged);
    assert_eq!(outcome(&report, "new/file.txt"), &Outcome::Removed);
    assert_eq!(outcome(&report, "gone/deep.txt"), &Outcome::Written);
    assert!(!report.paths.iter().any(|path| path.path.to_string() == "mine.txt"), "it is not concerned");
    assert!(before >= 1);

    // Redo restores the agent's work exactly, together with the user's.
    world.redo();
    assert_eq!(world.read("code.rs").as_deref(), Some("one\nTWO\nthree\nfour\nfive\nsix\n"));
    assert_eq!(world.read("new/file.txt").as_deref(), Some("by the agent\n"));
    assert_eq!(world.read("gone/deep.txt"), None);
    assert_eq!(world.read("mine.txt").as_deref(), Some("by hand\n"));
}

#[test]
fn a_conflict_with_one_of_several_changes_is_reported_as_partly_written() {
    let world = FileWorld::new();
    let lines = |second: &str, last: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{last}\n");
    world.write("f", &lines("2", "9"));
    world.agent(|world| world.write("f", &lines("two", "9")));
    world.agent(|world| world.write("f", &lines("two", "nine")));
    world.write("f", &lines("by hand", "nine"));
    let moved = world.go(Goal::Undo(Unit::Turn, 2));
    assert_eq!(world.read("f"), Some(lines("by hand", "9")));
    let report = moved.files.expect("files");
    assert!(
        matches!(outcome(&report, "f"), Outcome::Conflicted { written: false, partly: true, .. }),
        "{report:?}"
    );
    assert!(report.moves_files());
}

#[test]
fn conversation_and_files_are_one_step() {
    let world = FileWorld::new();
    world.world.say("User", "do it");
    let turn = Some(retake_model::id::TurnId::from_bytes([9; 16]));
    let caller = Caller { actor: Actor::Agent, turn, ..Caller::human() };
    let entry = retake_model::entry::EntryVersion::from_text("AI", "done", world.world.timeline.now());
    let add = Command::AddEntries {
        take: world.world.state().active,
        at: retake_timeline::InsertPosition::End,
        entries: vec![entry.into()],
    };
    world.world.timeline.change(world.world.thread, add, caller.clone()).expect("an entry");
    world.write("a.txt", "by the agent");
    world.working_copy.record_as_caller(world.world.thread, caller).expect("a record");
    assert_eq!(world.world.texts(), ["do it", "done"]);

    let moment = world.go(UNDO);
    assert_eq!(world.world.texts(), ["do it"]);
    assert_eq!(world.files(), files(&[]));
    assert_eq!(moment.moved.expect("a move").steps, 1);

    world.go(Goal::Redo(Unit::Turn, 1));
    assert_eq!(world.world.texts(), ["do it", "done"]);
    assert_eq!(world.files(), files(&[("a.txt", "by the agent")]));
}

#[test]
fn conversation_and_files_can_move_separately() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1"));
    world.agent(|world| world.write("a", "2"));
    let position = |world: &FileWorld| {
        world.world.read().history(world.world.thread).undo_status().expect("an undo status").position
    };
    let start = position(&world);

    let only = |scope| MoveOptions { scope, ..MoveOptions::default() };
    world.try_go(UNDO, only(Scope::Conversation)).expect("the conversation moves");
    assert_eq!(world.read("a").as_deref(), Some("2"));
    assert!(position(&world) < start);
    // If both move, the files follow: they are already in place.
    world.try_go(Goal::Redo(Unit::Turn, 1), MoveOptions::default()).expect("both move");
    assert_eq!((world.read("a").as_deref(), position(&world)), (Some("2"), start));

    let moved = world.try_go(UNDO, only(Scope::Files)).expect("the files move");
    assert_eq!(world.read("a").as_deref(), Some("1"));
    let kind = moved.moved.expect("a move").done.kind;
    assert!(matches!(kind, Some(OperationKind::FilesMoved { .. })), "{kind:?}");
    world.go(UNDO);
    assert_eq!(world.read("a").as_deref(), Some("2"), "moving the files is a change that undo takes back");
}

#[test]
fn a_preview_changes_nothing_and_shows_the_effects() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1"));
    let before = world.world.read().head(world.world.thread).expect("a head").id;
    let report = world.preview(UNDO).files.expect("files");
    assert!(report.preview);
    assert_eq!(outcome(&report, "a"), &Outcome::Removed);
    assert_eq!(world.read("a").as_deref(), Some("1"));
    assert_eq!(world.world.read().head(world.world.thread).expect("a head").id, before);
}

#[test]
fn conflicts_are_kept_taken_or_marked() {
    let check = |on_conflict, expected: &str| {
        let world = FileWorld::new();
        world.write("a", "old\n");
        world.record_changes();
        world.agent(|world| world.write("a", "agent\n"));
        world.write("a", "hand\n");
        let moment =
            world.try_go(UNDO, MoveOptions { on_conflict, ..MoveOptions::default() }).expect("a move");
        let report = moment.files.expect("files");
        assert!(matches!(outcome(&report, "a"), Outcome::Conflicted { theirs: Some(_), .. }), "{report:?}");
        assert_eq!(world.read("a").as_deref(), Some(expected));
        // Redo always leads back.
        world.redo();
        assert_eq!(world.read("a").as_deref(), Some("hand\n"));
    };
    check(OnConflict::Keep, "hand\n");
    check(OnConflict::Take, "old\n");
    check(OnConflict::Mark, "<<<<<<< as it is\nhand\n=======\nold\n>>>>>>> as it would be\n");
}

#[test]
fn a_jump_undoes_one_branch_and_redoes_the_other() {
    let world = FileWorld::new();
    let first = world.agent(|world| world.write("a", "1")).version;
    let second = world.agent(|world| world.write("b", "2")).version;
    world.go(Goal::Jump(first));
    assert_eq!(world.files(), files(&[("a", "1")]));
    world.agent(|world| world.write("c", "3"));
    assert_eq!(world.files(), files(&[("a", "1"), ("c", "3")]));
    world.go(Goal::Jump(second));
    assert_eq!(world.files(), files(&[("a", "1"), ("b", "2")]));
}

#[test]
fn switching_takes_brings_their_files_and_forking_keeps_the_current_ones() {
    let world = FileWorld::new();
    world.world.say("User", "first");
    world.agent(|world| world.write("shared", "1"));
    world.world.say("AI", "done");
    let main = world.world.state().active;
    let branch =
        Command::Branch { from: main, at: Some(world.world.entry(1)), name: Some("other".to_owned()) };
    world.write("uncommitted", "by hand");
    world.change(branch);
    // The branch undoes the agent's changes after the entry; manual edits stay.
    assert_eq!(world.files(), files(&[("uncommitted", "by hand")]));
    world.agent(|world| world.write("b", "on the other take"));
    world.change(Command::Switch { take: main });
    assert_eq!(world.files(), files(&[("shared", "1"), ("uncommitted", "by hand")]));
    world.write("mine", "on main");
    world.change(Command::Switch { take: world.world.named("other") });
    assert_eq!(world.files(), files(&[("b", "on the other take"), ("uncommitted", "by hand")]));
    // One undo returns to the previous take, with its files.
    world.undo();
    assert_eq!(world.files(), files(&[("mine", "on main"), ("shared", "1"), ("uncommitted", "by hand")]));
}

#[test]
fn each_take_records_its_first_and_current_files() {
    let world = FileWorld::new();
    let thread = world.world.thread;
    let known_before = RefCell::new(None);
    // Names of files that differ between the first and current files of a take.
    let changed = |take| {
        let reader = world.world.read();
        let known = reader.files(thread).of_takes(None, 100).expect("files");
        assert!(!known.more);
        // An earlier result leads to the same answer.
        let mut before = known_before.borrow_mut();
        let followed = reader.files(thread).of_takes(before.as_ref(), 100).expect("files");
        assert_eq!(followed.takes, known.takes);
        *before = Some(followed);
        assert_eq!(
            known.takes.get(&take).map(|files| files.current),
            reader.files(thread).of_take(take).expect("files")
        );
        let Some(files) = known.takes.get(&take) else { return Vec::new() };
        let question = DiffOptions::all(Detail::Paths);
        let changes = reader.snapshot(files.first).changes(files.current, &question).expect("both are there");
        changes.files.iter().map(|file| file.path.path.to_string()).collect::<Vec<_>>()
    };
    world.write("before", "0");
    world.world.say("User", "first");
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1"));
    world.world.say("AI", "done");
    world.agent(|world| world.write("b", "1"));
    assert_eq!(changed(main), ["a", "b"]);
    let at = Some(world.world.entry(1));
    world.change(Command::Branch { from: main, at, name: Some("other".to_owned()) });
    let other = world.world.state().active;
    assert_eq!(changed(other), Vec::<String>::new());
    world.agent(|world| world.write("c", "1"));
    world.agent(|world| world.write("d", "1"));
    assert_eq!(
        (changed(main), changed(other)),
        (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned(), "d".to_owned()])
    );
    world.undo();
    assert_eq!(changed(other), ["c"], "what was undone is not there");
    world.redo();
    assert_eq!(changed(other), ["c", "d"], "what was made again is");
    world.undo();
    assert_eq!(changed(other), ["c"]);
    world.redo();
    world.agent(|world| world.write("e", "1"));
    assert_eq!(changed(other), ["c", "d", "e"]);
    world.undo();
    world.undo();
    world.agent(|world| world.write("f", "1"));
    assert_eq!(changed(other), ["c", "f"]);
    world.undo();
    world.change(Command::Switch { take: main });
    assert_eq!((changed(main), changed(other)), (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]));
    assert!(world.world.read().files(thread).of_takes(None, 2).expect("files").more);
}

#[test]
fn a_take_that_never_changed_files_gets_them_back() {
    let world = FileWorld::new();
    world.write("f", "0");
    world.world.say("User", "first");
    let main = world.world.state().active;
    world.change(Command::Branch {
        from: main,
        at: Some(world.world.entry(1)),
        name: Some("alt".to_owned()),
    });
    world.agent(|world| {
        world.write("f", "alt");
        world.write("new", "n");
    });
    world.change(Command::Switch { take: main });
    assert_eq!(world.files(), files(&[("f", "0")]));
    world.change(Command::Switch { take: world.world.named("alt") });
    assert_eq!(world.files(), files(&[("f", "alt"), ("new", "n")]));
}

#[test]
fn a_take_that_starts_at_an_entry_has_the_files_of_that_entry() {
    // The new take, and whether it starts from the active take or from another one.
    let check = |begin: fn(TakeId, EntryId) -> Command, at: u64, left: bool, wanted: &[(&str, &str)]| {
        let world = FileWorld::new();
        world.world.say("User", "first");
        world.agent(|world| world.write("a", "1"));
        world.world.say("AI", "done");
        world.world.say("User", "second");
        world.agent(|world| world.write("b", "2"));
        world.world.say("AI", "done too");
        let main = world.world.state().active;
        let entry = world.world.entry(at);
        if left {
            let branch = Command::Branch { from: main, at: Some(world.world.entry(4)), name: None };
            world.change(branch);
            world.agent(|world| world.write("z", "elsewhere"));
        }
        world.write("mine", "by hand");
        world.change(begin(main, entry));
        let mut wanted = wanted.to_vec();
        // Manual edits stay where they were made: here, or with the take that becomes inactive.
        wanted.extend((!left).then_some(("mine", "by hand")));
        assert_eq!(world.files(), files(&wanted), "left: {left}, entry {at}");
    };
    let fork = |from, at| Command::Fork { from, at, name: None };
    let branch = |from, at| Command::Branch { from, at: Some(at), name: None };
    for left in [false, true] {
        check(fork, 1, left, &[]);
        check(fork, 3, left, &[("a", "1")]);
        check(branch, 1, left, &[]);
        check(branch, 3, left, &[("a", "1")]);
        check(branch, 4, left, &[("a", "1"), ("b", "2")]);
    }
}

#[test]
fn moves_keep_the_files_of_inactive_takes() {
    let world = FileWorld::new();
    world.write("f", "0");
    world.record_changes();
    let early = world.world.say("User", "first").version;
    world.agent(|world| world.write("f", "main"));
    world.world.say("AI", "done");
    let main = world.world.state().active;
    world.change(Command::Fork { from: main, at: world.world.entry(1), name: Some("alt".to_owned()) });
    let late = world.world.read().head(world.world.thread).expect("a head").operation.version;
    assert_eq!(world.files(), files(&[("f", "0")]));
    world.go(Goal::Jump(early));
    world.go(Goal::Jump(late));
    world.change(Command::Switch { take: main });
    assert_eq!(world.files(), files(&[("f", "main")]));
}

#[test]
fn a_branch_at_the_last_entry_keeps_all_files() {
    let world = FileWorld::new();
    world.world.say("User", "first");
    world.agent(|world| world.write("f", "agent"));
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    assert_eq!(world.files(), files(&[("f", "agent")]));
}

#[test]
fn deleting_the_active_take_brings_the_files_of_the_next() {
    let world = FileWorld::new();
    world.world.say("User", "first");
    world.write("a", "main");
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    world.agent(|world| world.write("a", "branch"));
    world.change(Command::DeleteTake { take: world.world.state().active });
    assert_eq!((world.world.state().active, world.read("a").as_deref()), (main, Some("main")));
}

#[test]
fn restoring_is_exact_for_all_or_some_paths_and_can_be_undone() {
    let world = FileWorld::new();
    world.write("d/a", "1");
    world.write("d/b", "1");
    let snapshot = world.record_changes().snapshot;
    world.agent(|world| {
        world.write("d/a", "2");
        world.remove("d/b");
        world.write("c", "3");
    });
    let now = world.files();
    let restore = |only: &[&str]| {
        let path = |text: &&str| RootPath::main(TreePath::new(text.as_bytes()).expect("a path"));
        let only: Vec<RootPath> = only.iter().map(path).collect();
        world.working_copy.restore(
            world.world.thread,
            snapshot,
            &only,
            Caller::human(),
            MoveOptions::default(),
        )
    };
    restore(&["d/b"]).expect("a restore");
    assert_eq!(world.files(), files(&[("c", "3"), ("d/a", "2"), ("d/b", "1")]));
    world.undo();
    assert_eq!(world.files(), now);
    restore(&[]).expect("a restore");
    assert_eq!(world.files(), files(&[("d/a", "1"), ("d/b", "1")]));
    let again = restore(&[]).expect("a restore");
    assert!(again.done.is_none(), "nothing was left to do, and nothing is said to be done");
    world.undo();
    assert_eq!(world.files(), now);
    let unknown = retake_model::content::ContentId::from_bytes([1; 32]);
    let refused =
        world.working_copy.restore(world.world.thread, unknown, &[], Caller::human(), MoveOptions::default());
    assert!(matches!(refused, Err(FileError::NoSuchSnapshot)));
}

#[test]
fn two_threads_in_one_folder_keep_each_others_changes() {
    let world = FileWorld::new();
    let other = world
        .world
        .timeline
        .create_thread(NewThread::in_project(PROJECT).titled("Other"), Caller::human())
        .expect("a thread")
        .thread;
    world.agent(|world| world.write("a", "by the first"));
    world.agent_of(other, |world| world.write("b", "by the second"));
    world.agent_of(other, |world| world.write("a", "by the second\n"));
    let report = world.undo();
    assert!(matches!(outcome(&report, "a"), Outcome::Conflicted { .. }));
    assert_eq!(world.files(), files(&[("a", "by the second\n"), ("b", "by the second")]));
    let move_options = MoveOptions::default();
    world
        .working_copy
        .go(other, Goal::Undo(Unit::Turn, 2), Caller::human(), move_options)
        .expect("an undo of the other");
    assert_eq!(world.files(), files(&[("a", "by the first")]));
}

#[test]
fn a_caller_that_expects_another_version_moves_nothing() {
    let world = FileWorld::new();
    let version = world.agent(|world| world.write("a", "1")).version;
    world.world.say("User", "meanwhile");
    let result = world.working_copy.go(
        world.world.thread,
        UNDO,
        Caller::human().expecting(version),
        MoveOptions::default(),
    );
    assert!(matches!(result, Err(FileError::Change(ChangeError::Conflict { .. }))), "{result:?}");
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn two_processes_on_one_folder_and_thread_take_turns() {
    let world = FileWorld::new();
    for number in 0..20 {
        world.agent(|world| world.write(&format!("file{number}"), "text"));
    }
    let second = world.second_working_copy();
    let thread = world.world.thread;
    std::thread::scope(|scope| {
        for working_copy in [&world.working_copy, &second] {
            scope.spawn(move || {
                for _ in 0..5 {
                    working_copy.go(thread, UNDO, Caller::human(), MoveOptions::default()).expect("an undo");
                }
            });
        }
        // Concurrent changes of the conversation.
        scope.spawn(|| {
            for number in 0..20 {
                let name = format!("moment {number}");
                world.world.change(Command::Save { name }).expect("a change");
            }
        });
    });
    let left: Vec<String> = world.files().into_keys().collect();
    let mut expected: Vec<String> = (0..10).map(|number| format!("file{number}")).collect();
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn a_take_can_have_a_worktree() {
    let world = FileWorld::new();
    world.world.say("User", "first");
    world.write("a", "shared\n");
    world.record_changes();
    let main = world.world.state().active;
    world.change(Command::Branch {
        from: main,
        at: Some(world.world.entry(1)),
        name: Some("worktree".to_owned()),
    });
    world.agent(|world| world.write("b", "of the take\n"));
    let take = world.world.state().active;
    world.change(Command::Switch { take: main });
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("worktree");
    let opened = world
        .working_copy
        .open_worktree(world.world.thread, take, &folder, &Caller::human())
        .expect("a folder");
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("its file"), "of the take\n");
    let again =
        world.working_copy.open_worktree(world.world.thread, take, &place.path().join("x"), &Caller::human());
    assert!(matches!(again, Err(FileError::TakeInWorktree(_))), "{again:?}");

    // Changes there belong to the take; the project's folder stays unchanged.
    let reader = world.world.read();
    let found = reader.worktrees().at(&opened.path).expect("a reader").expect("a known worktree");
    drop(reader);
    let workspace = retake_workspace::snapshot::Workspace::of(&opened.path).expect("a folder");
    let working_copy =
        retake_timeline::WorkingCopy::at_worktree(world.world.timeline.clone(), &found, workspace);
    std::fs::write(folder.join("b"), "changed there\n").expect("a file");
    let caller = Caller { actor: Actor::Agent, ..Caller::human() };
    working_copy.record_as_caller(world.world.thread, caller).expect("a record");
    assert_eq!(world.files(), files(&[("a", "shared\n")]));
    // An undo here affects only changes made here, not those in the worktree.
    world.go(UNDO);
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("its file"), "changed there\n");
    world.go(Goal::Redo(Unit::Turn, 1));
    working_copy
        .go(world.world.thread, UNDO, Caller::human(), MoveOptions::default())
        .expect("an undo there");
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("its file"), "of the take\n");
    assert_eq!(world.files(), files(&[("a", "shared\n")]));

    std::fs::write(folder.join("c"), "at the last moment\n").expect("a file");
    working_copy.close_worktree(Caller::human(), true).expect("a close");
    assert!(!folder.join("b").exists());
    world.change(Command::Switch { take });
    assert_eq!(
        world.files(),
        files(&[("a", "shared\n"), ("b", "of the take\n"), ("c", "at the last moment\n")])
    );
}

#[test]
fn undo_reverts_the_exclusion_of_a_captured_file() {
    type Replace<'text> = &'text dyn Fn(&FileWorld);
    let large = "large\n".repeat(400);
    let cases: [(&str, Replace<'_>); 2] = [
        ("too large", &|world| world.write("d/a", &large)),
        ("a pipe", &|world| {
            world.remove("d/a");
            let made = std::process::Command::new("mkfifo").arg(world.path("d/a")).status();
            assert!(made.expect("mkfifo runs").success());
        }),
    ];
    for (name, replace) in cases {
        let world = FileWorld::with_largest_file(1_000);
        world.write("d/a", "old\n");
        world.agent(|world| world.write("earlier", "stays\n"));
        let seen = world.agent(replace);
        assert!(seen.operation.is_some(), "{name}: the change is recorded");
        let report = world.undo();
        assert_eq!(world.read("d/a").as_deref(), Some("old\n"), "{name}");
        assert_eq!(
            world.read("earlier").as_deref(),
            Some("stays\n"),
            "{name}: the turn before is not undone"
        );
        // The replacing file has no copy, so it is moved aside.
        assert_eq!(report.aside, ["d/a.retake-aside"], "{name}");
        let aside = world.path("d/a.retake-aside").symlink_metadata().expect("it was moved aside");
        assert!(!aside.is_file() || aside.len() == large.len() as u64);
        // Nothing can restore it, and redo reports that.
        let report = world.redo();
        assert!(matches!(outcome(&report, "d/a"), Outcome::Skipped { .. }), "{name}: {report:?}");
        assert_eq!(world.read("d/a").as_deref(), Some("old\n"), "{name}");
        assert!(world.record_changes().operation.is_none(), "{name}: everything is recorded");
    }
}
