//! Ignored and secret files that `write` and `edit` replace: undo restores every byte, and no plaintext is
//! stored.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use retake_model::content::ContentId;
use retake_model::object::load;
use retake_model::operation::OperationKind;
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_model::tree::Snapshot;
use retake_timeline::{
    Caller, Command, Exporter, FileError, Goal, ImportMode, MoveOptions, Outcome, PathReport, Rules,
    Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::{Options, Workspace};
use serde_json::json;

use crate::stored::places;
use crate::world::{World, calls, text};

const OLD: &str = "TOKEN=the-old-secret-2f81c0\nOTHER=1\n";
const NEW: &str = "TOKEN=rotated\n";

/// A project with a secret file and ignored ones.
fn world() -> World {
    let world = World::new(vec![
        calls(&[
            ("a", "write", json!({"path": ".env", "content": NEW})),
            ("b", "edit", json!({"path": "local.json", "old": "8080", "new": "9090"})),
            ("c", "write", json!({"path": "cache/made.txt", "content": "made"})),
            ("d", "write", json!({"path": "plain.txt", "content": "plain, and captured"})),
        ]),
        text("Done."),
    ]);
    let write = |path: &str, content: &str| {
        fs::write(world.project.join(path), content).expect("the temporary folder is writable");
    };
    write(".gitignore", "local.json\ncache/\n");
    write(".env", OLD);
    fs::set_permissions(world.project.join(".env"), fs::Permissions::from_mode(0o600))
        .expect("the temporary folder is writable");
    write("local.json", "{\"port\": 8080, \"password\": \"only-in-local-json-77\"}\n");
    fs::create_dir(world.project.join("cache")).expect("the temporary folder is writable");
    write("plain.txt", "in the store, because it is captured\n");
    world
}

fn go(world: &World, goal: Goal) -> Vec<PathReport> {
    let working_copy = world.runtime.working_copy.as_ref().expect("files are recorded");
    let moved = working_copy.go(world.thread, goal, Caller::human(), MoveOptions::default()).expect("a move");
    moved.files.expect("files").paths
}

fn undo(world: &World) -> Vec<PathReport> {
    go(world, Goal::Undo(Unit::Turn, 1))
}

fn redo(world: &World) -> Vec<PathReport> {
    go(world, Goal::Redo(Unit::Turn, 1))
}

fn outcome<'a>(paths: &'a [PathReport], path: &str) -> &'a Outcome {
    let found = paths.iter().find(|report| report.path.to_string() == path);
    &found.unwrap_or_else(|| panic!("{path} is not reported: {paths:?}")).outcome
}

/// The content of each file; `None` if missing.
fn files(world: &World) -> [Option<String>; 4] {
    [".env", "local.json", "cache/made.txt", "plain.txt"].map(|path| world.read(path))
}

#[test]
fn undo_and_redo_restore_secret_and_ignored_files_byte_for_byte() {
    let world = world();
    let before = files(&world);
    world.run("rotate the token");
    let after = files(&world);
    assert_eq!(after[0].as_deref(), Some(NEW));
    assert_ne!(before, after);
    for _ in 0..2 {
        let paths = undo(&world);
        assert_eq!(files(&world), before);
        assert_eq!(*outcome(&paths, ".env"), Outcome::Written);
        assert_eq!(*outcome(&paths, "local.json"), Outcome::Written);
        assert_eq!(*outcome(&paths, "cache/made.txt"), Outcome::Removed);
        let mode = fs::metadata(world.project.join(".env")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let paths = redo(&world);
        assert_eq!(files(&world), after, "{paths:?}");
        assert_eq!(*outcome(&paths, ".env"), Outcome::Written);
    }
    let leftovers = fs::read_dir(&world.project).expect("a folder").flatten();
    assert!(
        leftovers.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".retake-tmp"))
    );
    world.check_rest();
}

#[test]
fn replaced_secret_content_is_nowhere_unencrypted_in_the_store() {
    let world = world();
    world.run("rotate the token");
    undo(&world);
    redo(&world);
    undo(&world);
    let store = world.folder.path().join("store");
    // Control: the same search finds captured content, compressed or not.
    assert!(!places(&store, b"because it is captured").is_empty());
    for secret in ["the-old-secret-2f81c0", "only-in-local-json-77"] {
        assert_eq!(places(&store, secret.as_bytes()), Vec::<String>::new());
    }
    let mut export = Vec::new();
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let exported =
        Exporter::new(&reader).thread(world.thread, &mut export, &mut |_, _| ()).expect("an export");
    assert!(exported.sealed_excluded > 0);
    let verified = world.runtime.timeline.store().verify(&mut |_| {}).expect("readable");
    assert_eq!(verified.problems, []);
}

#[test]
fn later_changes_of_the_user_stay_and_are_reported() {
    let world = world();
    world.run("rotate the token");
    fs::write(world.project.join(".env"), "TOKEN=by-hand\n").expect("the temporary folder is writable");
    let status =
        world.runtime.working_copy.as_ref().expect("files are recorded").status(10).expect("a glance");
    assert_eq!(status.changed.iter().map(|path| path.path.to_string()).collect::<Vec<_>>(), [".env"]);
    let paths = undo(&world);
    assert!(matches!(outcome(&paths, ".env"), Outcome::Conflicted { written: false, .. }), "{paths:?}");
    assert_eq!(world.read(".env").as_deref(), Some("TOKEN=by-hand\n"));
    assert_eq!(*outcome(&paths, "local.json"), Outcome::Written);
    assert!(world.read("local.json").is_some_and(|text| text.contains("8080")));
    // The store has no plaintext of it either.
    assert_eq!(places(&world.folder.path().join("store"), b"by-hand"), Vec::<String>::new());
    redo(&world);
    assert_eq!(world.read(".env").as_deref(), Some("TOKEN=by-hand\n"));
}

#[test]
fn without_the_key_each_path_is_reported_and_the_rest_moves() {
    let world = world();
    world.run("rotate the token");
    let key = world.runtime.timeline.store().key_file();
    fs::rename(&key, key.with_extension("away")).expect("the temporary folder is writable");
    let paths = undo(&world);
    for path in [".env", "local.json", "cache/made.txt"] {
        let Outcome::Skipped { reason } = outcome(&paths, path) else { panic!("{path}: {paths:?}") };
        assert!(reason.contains("key"), "{reason}");
    }
    assert_eq!(world.read(".env").as_deref(), Some(NEW));
    assert_eq!(world.read("plain.txt").as_deref(), Some("in the store, because it is captured\n"));
    assert!(!key.exists(), "a move makes no new key");

    // With the key restored, a second undo restores the paths that the first one skipped.
    fs::rename(key.with_extension("away"), &key).expect("the temporary folder is writable");
    redo(&world);
    let working_copy = world.runtime.working_copy.as_ref().expect("files are recorded");
    let deciding = MoveOptions { on_conflict: OnConflict::Take, ..MoveOptions::default() };
    working_copy.go(world.thread, Goal::Undo(Unit::Turn, 1), Caller::human(), deciding).expect("an undo");
    assert_eq!(world.read(".env").as_deref(), Some(OLD));
}

#[test]
fn a_file_too_large_to_seal_is_reported_by_the_undo() {
    let world = world();
    let large = fs::File::create(world.project.join(".env")).expect("the temporary folder is writable");
    large.set_len(retake_model::sealed::MAX_SEALED + 1).expect("the folder opens");
    world.run("rotate the token");
    assert_eq!(world.read(".env").as_deref(), Some(NEW));
    let paths = undo(&world);
    let Outcome::Skipped { reason } = outcome(&paths, ".env") else { panic!("{paths:?}") };
    assert!(reason.contains("sealed"), "{reason}");
    assert_eq!(world.read(".env").as_deref(), Some(NEW));
}

#[test]
fn a_damaged_key_is_reported_for_each_path_and_the_rest_moves() {
    let world = world();
    world.run("rotate the token");
    let key = world.runtime.timeline.store().key_file();
    fs::write(&key, "no key").expect("the temporary folder is writable");
    let paths = undo(&world);
    for path in [".env", "local.json", "cache/made.txt"] {
        let Outcome::Skipped { reason } = outcome(&paths, path) else { panic!("{path}: {paths:?}") };
        assert!(reason.contains("cannot be used") && reason.contains("store.key"), "{reason}");
    }
    assert_eq!(world.read("plain.txt").as_deref(), Some("in the store, because it is captured\n"));
    assert_eq!(fs::read(&key).expect("it is there"), b"no key", "a damaged key is never replaced");
}

#[test]
fn an_undo_with_another_key_reports_each_path() {
    let world = world();
    world.run("rotate the token");
    fs::write(world.runtime.timeline.store().key_file(), [7; 32]).expect("the temporary folder is writable");
    let paths = undo(&world);
    assert_eq!(world.read(".env").as_deref(), Some(NEW));
    for path in [".env", "local.json"] {
        assert!(!matches!(outcome(&paths, path), Outcome::Written), "{paths:?}");
    }
    assert_eq!(world.read("plain.txt").as_deref(), Some("in the store, because it is captured\n"));
}

#[test]
fn a_sealed_path_is_restored_by_name_and_an_unknown_revision_is_refused() {
    let world = world();
    let working_copy = world.runtime.working_copy.as_ref().expect("files are recorded");
    working_copy.record_changes(world.thread, Caller::human()).expect("the store is readable");
    fs::write(world.project.join("kept.txt"), "by hand\n").expect("the temporary folder is writable");
    working_copy.record_changes(world.thread, Caller::human()).expect("the store is readable");
    let snapshots = || -> Vec<ContentId> {
        let reader = world.runtime.timeline.read().expect("the store is readable");
        let files = reader.files(world.thread).list(None, 100).expect("files");
        files.into_iter().rev().flat_map(|at| [at.files.before, at.files.after]).collect()
    };
    let restore = |snapshot, path: &str| {
        let path = TreePath::new(path.as_bytes()).expect("a path");
        let path = RootPath { root: String::new(), path };
        working_copy.restore(world.thread, snapshot, &[path], Caller::human(), MoveOptions::default())
    };
    world.run("rotate the token");
    let before_it_was_sealed = snapshots()[0];
    let sealed = {
        let reader = world.runtime.timeline.read().expect("the store is readable");
        let queries = reader.queries();
        let has = |id: &ContentId| {
            let snapshot: Snapshot = load(&queries, *id).expect("a snapshot");
            snapshot.roots[0].sealed.is_some()
        };
        snapshots().into_iter().find(has).expect("a snapshot with sealed files")
    };
    let restored = restore(sealed, ".env").expect("a restore");
    assert_eq!(*outcome(&restored.files.paths, ".env"), Outcome::Written);
    assert_eq!(world.read(".env").as_deref(), Some(OLD));
    assert!(world.read("local.json").is_some_and(|text| text.contains("9090")), "only that path");
    let refused = restore(before_it_was_sealed, ".env").expect_err("its bytes are not known there");
    assert!(matches!(refused, FileError::NotSealedAtVersion(_)), "{refused}");
    assert_eq!(world.read(".env").as_deref(), Some(OLD));
}

#[test]
fn a_worktree_that_was_opened_and_closed_removes_no_secret_file_from_the_project() {
    let world = world();
    world.run("rotate the token");
    let (thread, timeline) = (world.thread, &world.runtime.timeline);
    let working_copy = world.runtime.working_copy.as_ref().expect("files are recorded");
    let state = || timeline.read().expect("the store is readable").state(thread).expect("a state");
    let change = |command| {
        let changed = working_copy.change(thread, command, Caller::human(), MoveOptions::default());
        changed.expect("a change").files.expect("files").paths
    };
    let main = state().active;
    let last = {
        let reader = timeline.read().expect("the store is readable");
        let entries = state().active_take(&reader.queries()).expect("a take").entries;
        let cell = entries.get(&reader.queries(), entries.len() - 1).expect("readable");
        cell.expect("an entry").entry
    };
    change(Command::Branch { from: main, at: Some(last), name: Some("second".into()) });
    let second = state().active;
    change(Command::Switch { take: main });
    let before = files(&world);
    let folder = world.folder.path().join("worktree");
    for changes_a_file in [false, true] {
        working_copy.open_worktree(thread, second, &folder, &Caller::human()).expect("a worktree");
        assert!(!folder.join(".env").exists(), "a secret file stays in its folder");
        if changes_a_file {
            fs::write(folder.join("plain.txt"), "by the take\n").expect("the temporary folder is writable");
        }
        let known =
            timeline.read().expect("the store is readable").worktrees().list().expect("a list").remove(0);
        let worktree =
            WorkingCopy::of_worktree(timeline, &known, &Options::default()).expect("a working copy");
        let closed = worktree.close_worktree(Caller::human(), true).expect("a close");
        let recorded: Vec<String> =
            closed.recorded.files.paths.iter().map(|path| path.path.to_string()).collect();
        assert_eq!(recorded, if changes_a_file { vec!["plain.txt"] } else { vec![] });
        let paths = change(Command::Switch { take: second });
        assert_eq!(files(&world)[..3], before[..3], "{paths:?}");
        let plain = if changes_a_file { Some("by the take\n") } else { before[3].as_deref() };
        assert_eq!(world.read("plain.txt").as_deref(), plain);
        change(Command::Switch { take: main });
        assert_eq!(files(&world), before);
    }
}

#[test]
fn an_imported_thread_reports_sealed_paths_and_has_none_of_their_content() {
    let world = world();
    world.run("rotate the token");
    let mut export = Vec::new();
    let reader = world.runtime.timeline.read().expect("the store is readable");
    Exporter::new(&reader).thread(world.thread, &mut export, &mut |_, _| ()).expect("an export");
    drop(reader);
    // The same files on another machine, after the turn.
    let there = world.folder.path().join("there");
    fs::create_dir(&there).expect("the temporary folder is writable");
    for path in [".gitignore", ".env", "local.json", "plain.txt", "kept.txt"] {
        fs::copy(world.project.join(path), there.join(path)).expect("the temporary folder is writable");
    }
    let timeline = Timeline::open(&world.folder.path().join("other"), Rules::default()).expect("a store");
    let project = timeline.project(&there).expect("a project").id;
    let import = std::io::Cursor::new(export);
    let imported = timeline.import(import, project, ImportMode::Same, |_, _| ()).expect("an import");
    let working_copy =
        WorkingCopy::at(timeline.clone(), project, Workspace::of(&there).expect("a workspace"));
    // This store contains everything in the export.
    let store = world.folder.path().join("other");
    assert!(!places(&store, b"because it is captured").is_empty());
    for secret in ["the-old-secret-2f81c0", "only-in-local-json-77"] {
        assert_eq!(places(&store, secret.as_bytes()), Vec::<String>::new());
    }
    let moved =
        working_copy.go(imported.thread, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default());
    let paths = moved.expect("a move").files.expect("files").paths;
    for path in [".env", "local.json"] {
        let Outcome::Skipped { reason } = outcome(&paths, path) else { panic!("{path}: {paths:?}") };
        assert!(reason.contains("sealed"), "{reason}");
    }
    assert_eq!(fs::read_to_string(there.join(".env")).ok().as_deref(), Some(NEW));
    assert_eq!(
        fs::read_to_string(there.join("plain.txt")).ok().as_deref(),
        Some("in the store, because it is captured\n")
    );
    assert_eq!(timeline.store().verify(&mut |_| {}).expect("readable").problems, []);
}

/// A turn of `write` calls, a step per call, and the text that ends it.
fn turns(steps: &[&[(&'static str, &str)]]) -> World {
    let mut answers = Vec::new();
    for step in steps {
        for (number, (path, content)) in step.iter().enumerate() {
            let call = format!("call-{number}");
            answers.push(calls(&[(&call, "write", json!({"path": path, "content": content}))]));
        }
        answers.push(text("Done."));
    }
    World::new(answers)
}

/// The operations that record edits by hand.
fn edits_by_hand(world: &World) -> usize {
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let history = reader.history(world.thread).list(None, 1000).expect("a thread");
    history.iter().filter(|found| matches!(found.kind, OperationKind::ExternalEdits { .. })).count()
}

/// The files that a turn writes, in order.
type TurnFiles = &'static [(&'static str, &'static str)];

/// Changes of the ignore rules in the middle of what the agent does: each list is a turn.
const RULES_CHANGE: &[(&str, &[TurnFiles])] = &[
    (
        "ignored by a later turn",
        &[
            &[("build.log", "one")],
            &[(".gitignore", "*.log\n"), ("build.log", "two")],
            &[("build.log", "three")],
        ],
    ),
    ("ignored by the same turn", &[&[("build.log", "one"), (".gitignore", "*.log\n"), ("build.log", "two")]]),
    (
        "no longer ignored",
        &[
            &[(".gitignore", "*.log\n"), ("build.log", "one")],
            &[("build.log", "two"), (".gitignore", "*.tmp\n")],
            &[("build.log", "three")],
        ],
    ),
    (
        "ignored, captured, ignored",
        &[
            &[(".gitignore", "*.log\n"), ("build.log", "one"), (".gitignore", "\n"), ("build.log", "two")],
            &[(".gitignore", "*.log\n"), ("build.log", "three")],
            &[(".gitignore", "# none\n")],
        ],
    ),
    (
        "an ignored folder",
        &[
            &[(".gitignore", "out/\n"), ("out/build.log", "one")],
            &[(".gitignore", "\n"), ("out/build.log", "two")],
            &[(".gitignore", "out/\n"), ("out/build.log", "three")],
        ],
    ),
];

#[test]
fn undo_and_redo_pass_changes_of_the_ignore_rules() {
    for (name, steps) in RULES_CHANGE {
        let world = turns(steps);
        let path = if name.contains("folder") { "out/build.log" } else { "build.log" };
        let state = || (world.read(path), world.read(".gitignore"));
        let mut states = vec![state()];
        for _ in *steps {
            world.run("go on");
            states.push(state());
        }
        let last = steps.iter().flat_map(|step| step.iter()).rfind(|(written, _)| *written == path);
        assert_eq!(world.read(path).as_deref(), last.map(|(_, content)| *content), "{name}");
        for round in 0..2 {
            for number in (0..steps.len()).rev() {
                let paths = undo(&world);
                assert_eq!(state(), states[number], "{name}: {round}, undo to {number}: {paths:?}");
            }
            for (number, expected) in states.iter().enumerate().skip(1) {
                let paths = redo(&world);
                assert_eq!(state(), *expected, "{name}: {round}, redo to {number}: {paths:?}");
            }
        }
        // All at once.
        let count = steps.len() as u64;
        go(&world, Goal::Undo(Unit::Turn, count));
        assert_eq!(state(), states[0], "{name}");
        go(&world, Goal::Redo(Unit::Turn, count));
        assert_eq!(state(), states[steps.len()], "{name}");
        assert_eq!(edits_by_hand(&world), 0, "{name}");
        world.check_rest();
    }
}

#[test]
fn edits_by_hand_beside_changes_of_the_ignore_rules_stay() {
    for (name, steps) in RULES_CHANGE {
        let world = turns(steps);
        let path = if name.contains("folder") { "out/build.log" } else { "build.log" };
        for _ in *steps {
            world.run("go on");
        }
        let target = world.project.join(path);
        fs::write(&target, "by hand").expect("the temporary folder is writable");
        let count = steps.len() as u64;
        for _ in 0..2 {
            let paths = go(&world, Goal::Undo(Unit::Turn, count));
            assert_eq!(world.read(path).as_deref(), Some("by hand"), "{name}: {paths:?}");
            assert!(
                matches!(outcome(&paths, path), Outcome::Conflicted { written: false, .. }),
                "{name}: {paths:?}"
            );
            assert_eq!(world.read(".gitignore"), None, "{name}");
            go(&world, Goal::Redo(Unit::Turn, count));
            assert_eq!(world.read(path).as_deref(), Some("by hand"), "{name}");
        }
        world.check_rest();
    }
}

#[test]
fn rules_that_the_user_changes_between_two_turns_are_passed() {
    let world = turns(&[&[("build.log", "one")], &[("build.log", "two")], &[("build.log", "three")]]);
    let rules = |text: &str| {
        fs::write(world.project.join(".gitignore"), text).expect("the temporary folder is writable");
    };
    world.run("captured");
    rules("*.log\n");
    world.run("ignored");
    rules("\n");
    world.run("captured again");
    for text in [Some("two"), Some("one"), None] {
        let paths = undo(&world);
        assert_eq!(world.read("build.log").as_deref(), text, "{paths:?}");
    }
    for (text, rule) in [("one", "*.log\n"), ("two", "\n"), ("three", "*.log\n")] {
        let paths = redo(&world);
        assert_eq!(world.read("build.log").as_deref(), Some(text), "{paths:?}");
        rules(rule);
    }
    world.check_rest();
}

#[test]
fn without_the_key_a_path_whose_ignore_rules_changed_is_reported() {
    let (_, steps) = RULES_CHANGE[1];
    let world = turns(steps);
    world.run("go on");
    assert_eq!(world.read("build.log").as_deref(), Some("two"));
    let key = world.runtime.timeline.store().key_file();
    fs::rename(&key, key.with_extension("away")).expect("the temporary folder is writable");
    let paths = undo(&world);
    assert_eq!(world.read("build.log").as_deref(), Some("two"));
    assert!(outcome(&paths, "build.log").left(), "{paths:?}");
    assert_eq!(world.read(".gitignore"), None);
    world.check_rest();
}
