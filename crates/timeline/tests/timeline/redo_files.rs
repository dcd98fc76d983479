//! Undo followed by redo restores the files, and manual edits stay.

use retake_timeline::{Caller, Command, FileError, Goal, MoveOptions, Outcome, PlanRequest, Scope, Unit};

use crate::files::files;
use crate::support::{FileWorld, outcome};

#[test]
fn undo_then_redo_is_the_identity_after_a_manual_revert() {
    let world = FileWorld::new();
    world.write("a", "1");
    world.write("b", "1");
    world.record_changes();
    world.agent(|world| {
        world.write("a", "2");
        world.write("b", "2");
        world.write("junk", "x");
    });
    world.write("a", "1");
    world.remove("junk");
    let before = world.files();
    world.undo();
    assert_eq!(world.files(), files(&[("a", "1"), ("b", "1")]));
    world.redo();
    assert_eq!(world.files(), before);
}

#[test]
fn an_undo_of_two_turns_and_two_redos_are_the_identity() {
    let world = FileWorld::new();
    world.write("a", "0");
    world.write("b", "0");
    world.record_changes();
    world.agent(|world| world.write("a", "1"));
    world.agent(|world| {
        world.write("a", "2");
        world.write("b", "2");
    });
    // Back to the result of the first turn, and to the state before both.
    world.write("a", "1");
    world.write("b", "0");
    let before = world.files();
    world.go(Goal::Undo(Unit::Turn, 2));
    assert_eq!(world.files(), files(&[("a", "0"), ("b", "0")]));
    world.redo();
    world.redo();
    assert_eq!(world.files(), before);
}

#[test]
fn a_redo_after_an_undo_that_moved_no_file_moves_none() {
    let world = FileWorld::new();
    world.write("a", "0");
    world.record_changes();
    world.agent(|world| world.write("a", "1"));
    world.write("a", "0");
    world.undo();
    world.redo();
    assert_eq!(world.files(), files(&[("a", "0")]));
}

#[test]
fn redo_keeps_manual_reverts_and_deletions() {
    // Manual edits before and after the undo of a file that the agent created or edited; `None` means no edit. Undo
    // followed by redo must not change the user's file.
    type TextMerge = Option<&'static str>;
    let cases: [(TextMerge, &str, Option<TextMerge>, Option<TextMerge>); 7] = [
        // The user reverted or deleted it before.
        (Some("old\n"), "agent\n", Some(Some("old\n")), None),
        (None, "agent\n", Some(None), None),
        // The user caused a conflict before, and reverts, deletes or rewrites the file after.
        (Some("old\n"), "agent\n", Some(Some("hand\n")), Some(Some("old\n"))),
        (None, "agent\n", Some(Some("hand\n")), Some(None)),
        (Some("old\n"), "agent\n", Some(Some("hand\n")), Some(Some("other hand\n"))),
        // The undo restores it, and the user deletes or rewrites it after.
        (Some("old\n"), "agent\n", None, Some(None)),
        (Some("old\n"), "agent\n", None, Some(Some("hand\n"))),
    ];
    for (old, agent, before, after) in cases {
        let world = FileWorld::new();
        let put = |text: Option<&str>| match text {
            Some(text) => world.write("a", text),
            None if world.path("a").exists() => world.remove("a"),
            None => {}
        };
        put(old);
        world.agent(|world| {
            world.write("a", agent);
            world.write("moves", "agent\n");
        });
        before.into_iter().for_each(put);
        world.undo();
        after.into_iter().for_each(put);
        let user = world.read("a");
        let report = world.redo();
        assert_eq!(world.read("a"), user, "{old:?} {before:?} {after:?}");
        assert_eq!(world.read("moves").as_deref(), Some("agent\n"));
        if after.is_some() {
            let outcome = outcome(&report, "a");
            assert!(
                matches!(outcome, Outcome::Conflicted { theirs: Some(_), written: false, partly: false }),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn redo_works_after_later_manual_edits_and_a_restart() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "agent\n"));
    world.undo();
    world.write("other", "later\n");
    let second = world.second_working_copy();
    let moment = second
        .go(world.world.thread, Goal::Redo(Unit::Turn, 1), Caller::human(), MoveOptions::default())
        .expect("a redo in another process");
    assert!(moment.files.expect("files").moves_files());
    assert_eq!(world.files(), files(&[("a", "agent\n"), ("other", "later\n")]));
}

#[test]
fn a_preview_shows_folders_with_excluded_files() {
    let world = FileWorld::new();
    world.write(".gitignore", "*.o\nbuilt/\n");
    world.record_changes();
    world.agent(|world| {
        for folder in ["ignored", "pipe", "below/deep", "repository", "free"] {
            world.write(&format!("{folder}/a"), "1");
        }
    });
    world.write("ignored/x.o", "object");
    world.write("below/deep/built/y", "object");
    world.write("repository/.git/HEAD", "ref: refs/heads/main");
    let made = std::process::Command::new("mkfifo").arg(world.path("pipe/p")).status().expect("mkfifo runs");
    assert!(made.success());
    let goal = Goal::Undo(Unit::Turn, 1);
    let shown = world.preview(goal).files.expect("files");
    let done = world.go(goal).files.expect("files");
    let outcomes = |paths: &[retake_timeline::PathReport]| -> Vec<(String, Outcome)> {
        paths.iter().map(|path| (path.path.to_string(), path.outcome.clone())).collect()
    };
    assert_eq!(outcomes(&shown.paths), outcomes(&done.paths));
    for folder in ["ignored", "pipe", "below/deep", "repository"] {
        assert!(world.path(folder).is_dir() && !world.path(folder).join("a").exists(), "{folder}");
    }
    assert!(!world.path("free").exists(), "the control: nothing else was in it");
    assert!(world.record_changes().operation.is_none(), "nothing is left to record");
}

#[test]
fn files_only_moves_cross_a_fork_in_both_directions() {
    let world = FileWorld::new();
    let only = MoveOptions { scope: Scope::Files, ..MoveOptions::default() };
    let go = |goal| world.try_go(goal, only).expect("a move of files");
    world.world.say("User", "first");
    world.agent(|world| world.write("a", "1"));
    world.world.say("User", "second");
    world.agent(|world| world.write("b", "2"));
    let main = world.world.state().active;
    world.change(Command::Fork { from: main, at: world.world.entry(2), name: None });
    world.agent(|world| world.write("c", "3"));
    let states = [
        files(&[("a", "1"), ("c", "3")]),
        files(&[("a", "1")]),
        files(&[("a", "1"), ("b", "2")]),
        files(&[("a", "1")]),
        files(&[]),
    ];
    for state in &states[1..] {
        go(Goal::Undo(Unit::Turn, 1));
        assert_eq!(world.files(), *state);
    }
    for state in states[..4].iter().rev() {
        go(Goal::Redo(Unit::Turn, 1));
        assert_eq!(world.files(), *state);
    }
    assert_ne!(world.world.state().active, main, "the conversation stays where it was");
}

#[test]
fn an_undo_of_several_steps_lists_paths_that_are_excluded_now() {
    let undo_two = Goal::Undo(Unit::Turn, 2);
    let ignored = FileWorld::new();
    ignored.agent(|world| world.write("a", "1"));
    ignored.agent(|world| {
        world.write(".gitignore", "a\n");
        world.write("a", "2");
    });
    let large = FileWorld::with_largest_file(100);
    large.agent(|world| world.write("a", "1"));
    large.agent(|world| world.write("a", &"2".repeat(200)));
    for world in [ignored, large] {
        let report = world.go(undo_two).files.expect("files");
        assert!(matches!(outcome(&report, "a"), Outcome::Skipped { .. }), "{report:?}");
        assert!(world.read("a").is_some_and(|text| text.starts_with('2')), "it stays");
    }
}

#[test]
fn a_files_only_preview_is_refused_like_its_move() {
    let world = FileWorld::new();
    world.write("a", "0");
    world.agent(|world| world.write("a", "1"));
    world.write("a", "0");
    let only = MoveOptions { scope: Scope::Files, ..MoveOptions::default() };
    let undo = Goal::Undo(Unit::Turn, 1);
    let request = PlanRequest::Move(undo);
    let plan = world.working_copy.plan(world.world.thread, request, Caller::human(), only);
    assert!(matches!(plan, Err(FileError::NothingMoves)));
    assert!(matches!(world.try_go(undo, only), Err(FileError::NothingMoves)));
}

#[test]
fn a_second_undo_reverts_files_that_the_first_one_left() {
    // What the user puts into `b` before the first undo, between undo and redo, and after the redo; then the second
    // undo must treat `b` like the first undo would.
    type Edit = Option<&'static str>;
    let cases: [(Edit, Edit, Edit, &str, bool); 4] = [
        // The user brings back the content of the turn.
        (Some("hand"), Some("agent"), None, "old", true),
        (Some("hand"), None, Some("agent"), "old", true),
        // The conflict is still there, and is reported again.
        (Some("hand"), None, None, "hand", false),
        (Some("hand"), Some("other"), None, "other", false),
    ];
    for (first, second, third, expected, is_written) in cases {
        let world = FileWorld::new();
        world.write("a", "old");
        world.write("b", "old");
        world.agent(|world| {
            world.write("a", "agent");
            world.write("b", "agent");
        });
        let edit = |text: Edit| text.into_iter().for_each(|text| world.write("b", text));
        edit(first);
        world.undo();
        edit(second);
        world.redo();
        edit(third);
        let case = (first, second, third);
        let preview = world.preview(Goal::Undo(Unit::Turn, 1)).files.expect("files");
        let report = world.undo();
        assert_eq!(world.files(), files(&[("a", "old"), ("b", expected)]), "{case:?}");
        for report in [&preview, &report] {
            let outcome = outcome(report, "b");
            assert_eq!(*outcome == Outcome::Written, is_written, "{case:?}: {outcome:?}");
            assert_eq!(matches!(outcome, Outcome::Conflicted { .. }), !is_written, "{case:?}: {outcome:?}");
        }
    }
}

#[test]
fn a_second_undo_of_two_turns_reverts_a_file_that_the_first_one_left() {
    let world = FileWorld::new();
    world.write("a", "0");
    world.write("b", "0");
    world.agent(|world| world.write("a", "1"));
    world.agent(|world| world.write("b", "1"));
    world.write("a", "hand");
    world.go(Goal::Undo(Unit::Turn, 2));
    world.go(Goal::Redo(Unit::Turn, 2));
    world.write("a", "1");
    world.go(Goal::Undo(Unit::Turn, 2));
    assert_eq!(world.files(), files(&[("a", "0"), ("b", "0")]));
}

#[test]
fn a_second_undo_reverts_a_file_that_was_ignored_during_the_first_one() {
    let world = FileWorld::new();
    world.write("a", "0");
    world.write("b", "0");
    world.agent(|world| {
        world.write("a", "1");
        world.write("b", "1");
    });
    world.write(".gitignore", "b\n");
    world.undo();
    assert_eq!(world.read("b").as_deref(), Some("1"));
    world.remove(".gitignore");
    let report = world.redo();
    assert!(
        report.paths.iter().all(|path| !matches!(path.outcome, Outcome::Conflicted { .. })),
        "{report:?}"
    );
    world.undo();
    assert_eq!(world.files(), files(&[("a", "0"), ("b", "0")]));
}
