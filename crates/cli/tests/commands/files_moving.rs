//! Commands that move files, as text and as JSON.

use std::fs;
use std::path::Path;

use crate::support::Sandbox;
use serde_json::Value;

/// A project with two files, in which an agent changed one, removed the other and created a third.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.write("login.rs", "one\ntwo\nthree\nfour\n");
    sandbox.write("old.rs", "precious\n");
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("sed -i s/one/ONE/ login.rs; rm old.rs; echo new > new.rs");
    sandbox
}

/// The reported outcome of a path.
fn outcome(answer: &Value, path: &str) -> Value {
    let paths = answer["files"]["paths"].as_array().unwrap_or_else(|| panic!("no paths in {answer}"));
    let found = paths.iter().find(|found| found["path"] == path);
    found.unwrap_or_else(|| panic!("{path} is not in {answer}"))["outcome"].clone()
}

#[test]
fn undo_and_redo_report_each_path() {
    let sandbox = project();
    sandbox.write("login.rs", "ONE\ntwo\nthree\nfour\nfive\n");
    let ahead = sandbox.json(&["undo", "--dry-run"]);
    assert_eq!(ahead["files"]["preview"], true);
    assert_eq!(sandbox.read("new.rs").as_deref(), Some("new\n"), "a look ahead moves nothing");

    let answer = sandbox.json(&["undo"]);
    assert_eq!(outcome(&answer, "login.rs"), "merged");
    assert_eq!(outcome(&answer, "old.rs"), "written");
    assert_eq!(outcome(&answer, "new.rs"), "removed");
    assert_eq!(sandbox.read("login.rs").as_deref(), Some("one\ntwo\nthree\nfour\nfive\n"));
    assert_eq!(sandbox.read("old.rs").as_deref(), Some("precious\n"));
    assert_eq!(sandbox.read("new.rs"), None);

    sandbox.json(&["redo"]);
    assert_eq!(sandbox.read("login.rs").as_deref(), Some("ONE\ntwo\nthree\nfour\nfive\n"));
    assert_eq!((sandbox.read("old.rs"), sandbox.read("new.rs").as_deref()), (None, Some("new\n")));
}

#[test]
fn a_conflicting_file_is_unchanged_and_both_versions_are_stored() {
    let sandbox = project();
    sandbox.write("login.rs", "Uno\ntwo\nthree\nfour\n");
    let answer = sandbox.json(&["undo"]);
    assert_eq!(outcome(&answer, "login.rs"), "conflicted");
    assert_eq!(sandbox.read("login.rs").as_deref(), Some("Uno\ntwo\nthree\nfour\n"));
    assert_eq!(sandbox.read("old.rs").as_deref(), Some("precious\n"), "the other files moved");
    sandbox.done(&["restore", "1", "login.rs"]);
    assert_eq!(sandbox.read("login.rs").as_deref(), Some("one\ntwo\nthree\nfour\n"));
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("login.rs").as_deref(), Some("Uno\ntwo\nthree\nfour\n"));
}

#[test]
fn conversation_and_files_can_be_undone_separately() {
    let sandbox = project();
    let answer = sandbox.json(&["undo", "--conversation"]);
    assert_eq!((answer["files"].clone(), sandbox.read("old.rs")), (Value::Null, None));
    sandbox.done(&["redo"]);
    let answer = sandbox.json(&["undo", "--files"]);
    assert_eq!(answer["kind"]["type"], "files_moved");
    assert_eq!(sandbox.read("old.rs").as_deref(), Some("precious\n"));
    assert_eq!(sandbox.run(&["undo", "--files", "--conversation"]).code, 2);
}

#[test]
fn on_a_terminal_a_preview_is_shown_and_confirmed() {
    let sandbox = project();
    let screen = sandbox.answered(80, &["undo"], "n\r");
    assert!(screen.join("\n").contains("Continue? [Y/n]"), "{screen:?}");
    assert_eq!(sandbox.read("old.rs"), None, "the answer was no");
    let screen = sandbox.answered(80, &["undo"], "\r");
    assert!(screen.join("\n").contains("Undid: changed 3 files"), "{screen:?}");
    assert_eq!(sandbox.read("old.rs").as_deref(), Some("precious\n"));
    insta::assert_snapshot!("redo_files", sandbox.screen(80, &["redo", "--yes"]).join("\n"));
}

#[test]
fn exec_records_file_changes_and_returns_the_exit_code() {
    let sandbox = project();
    let output = sandbox.run(&["exec", "--", "sh", "-c", "echo said; echo 2 > b; exit 7"]);
    assert_eq!((output.code, output.stdout.as_str()), (7, "said\n"));
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("b"), None);
    assert_eq!(sandbox.run(&["exec", "--", "no-such-program"]).code, 127);
}

#[test]
fn changes_of_overlapping_commands_need_confirmation() {
    let sandbox = project();
    let program = env!("CARGO_BIN_EXE_retake");
    let inner = format!("{program} exec -- sh -c 'echo ? > both'");
    sandbox.agent(&format!("echo 1 > first; {inner}; echo 1 > last"));
    sandbox.done(&["undo", "--yes"]);
    assert_eq!((sandbox.read("last"), sandbox.read("both").as_deref()), (None, Some("?\n")));

    let (code, error) = sandbox.refused(&["undo", "--yes"]);
    assert_eq!(code, 5, "{error}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("both") && message.contains("--shared"), "{error}");
    assert_eq!(sandbox.json(&["undo", "--dry-run"])["preview"]["shared"][0]["path"], "both");
    let screen = sandbox.answered(80, &["undo"], "\r").join("\n");
    assert!(screen.contains("Author unknown") && screen.contains("both"), "{screen}");
    assert_eq!(sandbox.read("both"), None);
    sandbox.done(&["redo", "--yes"]);
    sandbox.done(&["undo", "--shared"]);
    assert_eq!((sandbox.read("both"), sandbox.read("first").as_deref()), (None, Some("1\n")));
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("first"), None);
}

#[test]
fn forks_branches_and_retries_confirm_shared_changes() {
    let sandbox = project();
    sandbox.done(&["entry", "add", "one"]);
    let program = env!("CARGO_BIN_EXE_retake");
    sandbox.agent(&format!("echo 1 > first; {program} exec -- sh -c 'echo ? > both'"));
    sandbox.done(&["entry", "add", "two"]);
    for command in [&["take", "fork", "1"][..], &["take", "branch", "1"], &["retry", "1"]] {
        let from = sandbox.json(&["take", "list"])["active"].clone();
        let with = |flag| [command, &[flag]].concat();
        if command != ["retry", "1"] {
            let ahead = sandbox.json(&with("--dry-run"));
            assert_eq!(ahead["preview"]["shared"][0]["path"], "both", "{command:?}");
        }
        let (code, error) =
            sandbox.refused(&if command == ["retry", "1"] { command.to_vec() } else { with("--yes") });
        assert_eq!(code, 5, "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("both") && message.contains("--shared"), "{error}");
        assert_eq!(sandbox.json(&["take", "list"])["active"], from);
        sandbox.done(&with("--shared"));
        assert_eq!((sandbox.read("both"), sandbox.read("first")), (None, None), "{command:?}");
        sandbox.done(&["take", "switch", "main"]);
        assert_eq!(sandbox.read("both").as_deref(), Some("?\n"));
    }
}

#[test]
fn status_lists_excluded_paths() {
    let sandbox = project();
    sandbox.write(".env", "KEY=canary-7d1f\n");
    sandbox.write(".gitignore", "*.log\n");
    sandbox.write("a.log", "noise\n");
    let answer = sandbox.json(&["status"]);
    let reason = |path: &str| {
        let left = answer["excluded"].as_array().expect("a list");
        left.iter().find(|left| left["path"] == path).map(|left| left["reason"].clone())
    };
    assert_eq!(reason(".env"), Some("secret".into()));
    assert_eq!(reason("a.log"), Some("ignored".into()));
    assert_eq!(reason("login.rs"), None);
    let store = sandbox.project().parent().expect("the sandbox").to_owned();
    assert!(!contains(&store, &sandbox.project(), b"canary-7d1f"), "a secret reached the store");
}

/// Whether any file below a folder, except in one subfolder, contains these bytes.
fn contains(folder: &Path, without: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        if path == without {
            false
        } else if path.is_dir() {
            contains(&path, without, bytes)
        } else {
            fs::read(&path).expect("a file").windows(bytes.len()).any(|window| window == bytes)
        }
    })
}

#[test]
fn takes_bring_their_files_and_can_have_a_worktree() {
    let sandbox = project();
    sandbox.done(&["entry", "add", "Try again."]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.agent("echo second > take.txt");
    let answer = sandbox.json(&["take", "switch", "main"]);
    assert_eq!(outcome(&answer, "take.txt"), "removed");
    let worktree = sandbox.project().join("../worktree");
    let opened = sandbox.json(&["worktree", "add", "second", "../worktree"]);
    assert_eq!(opened["files"], 3);
    assert_eq!(fs::read_to_string(worktree.join("take.txt")).expect("a file"), "second\n");
    let (code, error) = sandbox.refused(&["take", "switch", "second"]);
    assert_eq!(code, 5, "{error}");
    // Commands in the worktree refer to its take.
    fs::write(worktree.join("take.txt"), "changed\n").expect("our folder");
    let output = sandbox.run_in(&worktree, &["worktree", "remove", "--delete-files", "--json"], "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!worktree.exists());
    sandbox.done(&["take", "switch", "second"]);
    assert_eq!(sandbox.read("take.txt").as_deref(), Some("changed\n"));
}

#[test]
fn invalid_input_is_refused_with_an_action() {
    let sandbox = project();
    let check = |arguments: &[&str], code: i32, hint: &str| {
        let (found, error) = sandbox.refused(arguments);
        assert_eq!(found, code, "{arguments:?}: {error}");
        assert!(error.to_string().contains(hint), "{arguments:?}: {error}");
    };
    check(&["restore", "99"], 3, "versions 1 to");
    check(&["restore", "nothing like it"], 3, "retake snapshot list");
    check(&["restore", "1", "/etc/passwd"], 2, "outside the project");
    check(&["restore", "1", ".git/config"], 2, "version control");
    check(&["worktree", "remove"], 3, "retake worktree list");
    check(&["-C", "/", "status"], 3, "project");
    assert_eq!(sandbox.run(&["undo", "--conflicts", "maybe"]).code, 2);
}

#[test]
fn a_dry_run_is_refused_like_the_undo_while_a_command_runs() {
    let sandbox = project();
    let end = sandbox.project().with_file_name("end");
    std::thread::scope(|scope| {
        scope.spawn(|| sandbox.agent("touch started; until test -e ../end; do sleep 0.05; done"));
        while sandbox.read("started").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let previewed = sandbox.refused(&["undo", "--dry-run"]);
        let undone = sandbox.refused(&["undo"]);
        fs::write(end, "").expect("our folder");
        assert_eq!(previewed, undone);
    });
    sandbox.done(&["undo", "--dry-run"]);
}
