//! A command applies to the take that it names, and to no other.

use std::path::Path;
use std::process::Command;

use crate::support::Sandbox;
use serde_json::{Value, json};

/// A thread with two takes, each with a file; `main` is active.
fn two_takes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "T"]);
    sandbox.done(&["entry", "add", "first"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.agent("echo theirs > second.txt");
    sandbox.done(&["entry", "add", "in second"]);
    sandbox.done(&["take", "switch", "main"]);
    sandbox.agent("echo ours > work.txt");
    sandbox
}

fn entries(sandbox: &Sandbox, take: &str) -> usize {
    sandbox.json(&["thread", "show", "-k", take])["entries"].as_array().map_or(0, Vec::len)
}

fn json_in(sandbox: &Sandbox, folder: &Path, arguments: &[&str]) -> Value {
    let output = sandbox.run_in(folder, &[arguments, &["--json"]].concat(), "");
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[test]
fn undoing_a_change_of_another_take_leaves_the_files_here() {
    let sandbox = two_takes();
    let deleted = sandbox.done(&["entry", "delete", "last", "-k", "second"]);
    assert!(deleted.contains("`retake undo -k second` undoes it"), "{deleted}");
    let ahead = sandbox.json(&["undo", "-t", "T/second", "--dry-run"]);
    assert_eq!(
        (&ahead["preview"]["entries_before"], &ahead["preview"]["entries_after"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(ahead["files"], Value::Null, "{ahead}");
    let undone = sandbox.json(&["undo", "-k", "second"]);
    assert_eq!((&undone["after"]["take"], &undone["after"]["entries"]), (&json!("second"), &json!(2)));
    assert_eq!((entries(&sandbox, "second"), entries(&sandbox, "main")), (2, 1));
    assert_eq!(sandbox.read("work.txt").as_deref(), Some("ours\n"));
    let history = sandbox.json(&["history", "-t", "T/second"]);
    assert_eq!(
        (&history["history"]["can_redo"], &history["operations"][1]["redoable"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(sandbox.json(&["history"])["history"]["can_redo"], false);
    assert_eq!(sandbox.json(&["thread", "show", "-k", "second"])["history"]["can_redo"], true);
    sandbox.done(&["redo", "-t", "T/second"]);
    assert_eq!(entries(&sandbox, "second"), 1);
    let before = history["history"]["position"].to_string();
    sandbox.done(&["jump", &before, "-k", "second", "--conversation"]);
    assert_eq!((entries(&sandbox, "second"), entries(&sandbox, "main")), (2, 1));
    assert_eq!(sandbox.read("work.txt").as_deref(), Some("ours\n"));
}

#[test]
fn a_change_with_files_in_a_take_without_a_folder_is_refused() {
    let sandbox = two_takes();
    sandbox.done(&["undo", "-k", "second"]);
    let (code, error) = sandbox.refused(&["undo", "-k", "second"]);
    let message = error["message"].as_str().expect("a text");
    assert!(code == 5 && message.contains("take switch") && message.contains("--conversation"), "{error}");
    assert_eq!(sandbox.read("work.txt").as_deref(), Some("ours\n"));
    sandbox.done(&["take", "switch", "second", "-y"]);
    assert_eq!(sandbox.read("second.txt").as_deref(), Some("theirs\n"));
    sandbox.done(&["undo", "-k", "second", "--files"]);
    assert_eq!(sandbox.read("second.txt"), None);
}

#[test]
fn the_hint_names_the_thread_and_the_take_that_an_undo_must_name() {
    let sandbox = two_takes();
    let here = sandbox.done(&["entry", "add", "here"]);
    assert!(here.contains("`retake undo` undoes it"), "{here}");
    let id = sandbox.json(&["thread", "show"])["thread"]["id"].as_str().expect("an id").to_owned();
    sandbox.done(&["thread", "new", "Other"]);
    for (arguments, wanted) in [
        (vec!["entry", "add", "-t", "T", "there"], String::new()),
        (vec!["draft", "set", "-t", "T/second", "words"], " -k second".to_owned()),
        (vec!["take", "rename", "third", "-t", "T", "-k", "second"], String::new()),
    ] {
        let printed = sandbox.done(&arguments);
        let command =
            printed.split('`').find(|text| text.starts_with("retake undo")).expect("a hint").to_owned();
        let rest = command.strip_prefix("retake undo -t ").expect("the thread is named");
        let short = rest.split(' ').next().expect("an id");
        assert!(id.starts_with(short) && rest.ends_with(&wanted), "{printed}");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let undone = sandbox.json(&words);
        let before = undone["from"].as_u64().expect("a version");
        assert_eq!(undone["version"].as_u64(), Some(before + 1), "it takes back just that: {undone}");
    }
}

#[test]
fn a_take_argument_without_effect_is_refused() {
    let sandbox = two_takes();
    for arguments in [
        &["save", "now", "-t", "T/second"][..],
        &["status", "-t", "T/second"],
        &["reset", "--yes", "-t", "T/second"],
        &["thread", "delete", "T/second"],
        &["purge", "--yes", "T/second"],
    ] {
        let (code, error) = sandbox.refused(arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
    }
    let executed = sandbox.run(&["exec", "-t", "T/second", "--", "touch", "x"]);
    assert_eq!((executed.code, sandbox.read("x")), (125, None), "{}", executed.stderr);
}

#[test]
fn in_a_worktree_the_undo_status_is_that_of_its_take() {
    let sandbox = two_takes();
    let folder = sandbox.project().with_file_name("worktree");
    sandbox.done(&["worktree", "add", "second", &folder.to_string_lossy()]);
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.json(&["history"])["history"]["can_redo"], true);
    for arguments in [&["history"][..], &["thread", "show"], &["thread", "info"]] {
        let shown = json_in(&sandbox, &folder, arguments);
        assert_eq!(shown["history"]["can_redo"], false, "{arguments:?}");
    }
    assert_eq!(json_in(&sandbox, &folder, &["undo", "-k", "second"])["after"]["take"], "second");
    assert_eq!(json_in(&sandbox, &folder, &["redo", "-k", "main"])["after"]["take"], "main");
    assert_eq!(sandbox.read("work.txt").as_deref(), Some("ours\n"));
}

#[test]
fn declining_a_switch_keeps_the_current_thread() {
    let sandbox = two_takes();
    sandbox.done(&["thread", "new", "Other"]);
    let screen = sandbox.answered(80, &["thread", "switch", "T/second"], "n\r");
    assert!(screen.join("\n").contains("Nothing was changed."), "{screen:?}");
    assert_eq!(sandbox.json(&["thread", "show"])["thread"]["title"], "Other");
    let screen = sandbox.answered(80, &["thread", "switch", "T/second"], "y\r");
    assert!(screen.join("\n").contains("Switched to T, take second"), "{screen:?}");
    assert_eq!(sandbox.json(&["thread", "show"])["thread"]["title"], "T");
}

/// Makes a commit in a folder and returns its id.
fn commit(folder: &Path, name: &str) -> String {
    let git = |arguments: &[&str]| {
        let user = ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main"];
        let output =
            Command::new("git").args(user).args(arguments).current_dir(folder).output().expect("git");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", name]);
    git(&["rev-parse", "HEAD"])
}

#[test]
fn a_thread_of_another_folder_keeps_its_own_folder_and_commit() {
    let sandbox = Sandbox::new();
    let other = sandbox.project().with_file_name("o");
    std::fs::create_dir(&other).expect("a folder");
    let (ours, theirs) = (commit(&sandbox.project(), "ours"), commit(&other, "theirs"));
    assert_ne!(ours, theirs);
    sandbox.done(&["thread", "new", "X"]);
    sandbox.done(&["entry", "add", "first"]);
    let id = sandbox.json(&["thread", "show"])["thread"]["id"].as_str().expect("an id").to_owned();
    json_in(&sandbox, &other, &["thread", "new", "Other"]);
    json_in(&sandbox, &other, &["entry", "add", "-t", &id, "hello"]);
    let seen = sandbox.json(&["thread", "info"])["last_seen"].clone();
    let folder = |path: &Path| json!(path.canonicalize().expect("a folder"));
    assert_eq!(seen["git_commit"], json!(ours), "{seen}");
    assert_eq!(seen["workspace_root"], folder(&sandbox.project()));
    assert_eq!(seen["working_directory"], folder(&other));
    let branched = json_in(&sandbox, &other, &["take", "branch", "-t", &id]);
    assert_eq!(branched["take"]["git_commit"], json!(ours), "{branched}");
}

#[test]
fn context_file_paths_are_relative_to_the_folder_of_the_thread() {
    let sandbox = two_takes();
    let other = sandbox.project().with_file_name("o");
    std::fs::create_dir(&other).expect("a folder");
    let id = sandbox.json(&["thread", "show"])["thread"]["id"].as_str().expect("an id").to_owned();
    json_in(&sandbox, &other, &["thread", "new", "Other"]);
    sandbox.write("notes.md", "notes\n");
    let added = sandbox.run_in(&other, &["context", "add", "-t", &id, "notes.md"], "");
    assert!(added.code == 0 && !added.stderr.contains("There is no file"), "{}", added.stderr);
    let kept = |listed: &Value| listed["files"][0]["path"].clone();
    assert_eq!(kept(&sandbox.json(&["context"])), "notes.md");

    let folder = sandbox.project().with_file_name("worktree");
    sandbox.done(&["worktree", "add", "second", &folder.to_string_lossy()]);
    let added = sandbox.run_in(&folder, &["context", "add", "second.txt"], "");
    assert!(added.code == 0 && !added.stderr.contains("There is no file"), "{}", added.stderr);
    assert_eq!(kept(&json_in(&sandbox, &folder, &["context"])), "second.txt");
}
