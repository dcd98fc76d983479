//! A thread has its own folder: the current folder only selects the thread.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Output, Sandbox};
use serde_json::Value;

/// A project whose thread created a file, and another folder with a file of that name.
fn two_folders() -> (Sandbox, PathBuf, String) {
    let sandbox = Sandbox::new();
    let made = sandbox.json(&["thread", "new", "Fix the login"]);
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("echo theirs > a.txt");
    let other = sandbox.project().with_file_name("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("a.txt"), "precious\n").expect("a file");
    assert!(sandbox.run_in(&other, &["thread", "new", "Other"], "").code == 0);
    let thread = made["thread"].as_str().expect("an id").to_owned();
    (sandbox, other, thread)
}

fn succeeded(output: &Output) -> &str {
    assert_eq!(output.code, 0, "{}", output.stderr);
    &output.stderr
}

fn precious(other: &Path) {
    let found = fs::read_to_string(other.join("a.txt"));
    assert_eq!(found.ok().as_deref(), Some("precious\n"), "the folder of the command is not touched");
}

#[test]
fn a_command_changes_the_folder_of_its_thread_and_names_it() {
    let (sandbox, other, thread) = two_folders();
    let folder = sandbox.project().canonicalize().expect("a folder").to_string_lossy().into_owned();
    let in_other = |arguments: &[&str]| sandbox.run_in(&other, arguments, "");
    let undone = in_other(&["undo", "-t", &thread]);
    let named = succeeded(&undone);
    assert!(named.contains(&folder), "{named}");
    assert_eq!(sandbox.read("a.txt"), None);
    precious(&other);
    let redone = in_other(&["redo", "-t", &thread, "--json"]);
    succeeded(&redone);
    let redone: Value = serde_json::from_str(&redone.stdout).expect("JSON");
    assert_eq!(redone["files"]["folder"], folder.as_str());
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("theirs\n"));
    precious(&other);
    succeeded(&in_other(&["jump", "1", "-t", &thread]));
    assert_eq!(sandbox.read("a.txt"), None);
    precious(&other);
    succeeded(&in_other(&["redo", "9", "-t", &thread]));
    sandbox.write("a.txt", "changed\n");
    succeeded(&in_other(&["restore", "2", "a.txt", "-t", &thread]));
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("theirs\n"));
    precious(&other);
    succeeded(&in_other(&["exec", "-t", &thread, "--", "sh", "-c", "echo run > b.txt"]));
    assert_eq!(sandbox.read("b.txt").as_deref(), Some("run\n"));
    assert!(!other.join("b.txt").exists());
    succeeded(&in_other(&["run", "-t", &thread, "--approve", "all", "/write c.txt hello"]));
    assert!(!other.join("c.txt").exists());
    precious(&other);
}

#[test]
fn a_thread_of_another_project_does_not_become_the_current_one_here() {
    let (sandbox, other, thread) = two_folders();
    let switched = sandbox.run_in(&other, &["thread", "switch", &thread, "--json"], "");
    succeeded(&switched);
    let shown = sandbox.run_in(&other, &["thread", "show", "--json"], "");
    assert!(shown.stdout.contains("\"Other\""), "{}", shown.stdout);
}

#[test]
fn a_missing_or_replaced_folder_is_refused() {
    let (sandbox, other, thread) = two_folders();
    let undo = || sandbox.run_in(&other, &["undo", "-t", &thread], "");
    let away = sandbox.project().with_file_name("away");
    fs::rename(sandbox.project(), &away).expect("it moves");
    let gone = undo();
    assert!(gone.code != 0);
    assert!(gone.stderr.contains("is missing at"), "{}", gone.stderr);
    fs::create_dir(sandbox.project()).expect("another folder");
    fs::write(sandbox.project().join("a.txt"), "theirs\n").expect("a file");
    assert!(undo().code != 0);
    assert_eq!(
        sandbox.read("a.txt").as_deref(),
        Some("theirs\n"),
        "another folder at that path is not touched"
    );
    precious(&other);
}

#[test]
fn a_dry_run_switches_and_forks_nothing() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Say hello"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    let takes = || sandbox.json(&["take", "list"]).to_string();
    let before = takes();
    sandbox.write("mine.txt", "by hand\n");
    let dry = sandbox.json(&["take", "switch", "main", "--conversation", "--dry-run"]);
    assert_eq!(dry["dry_run"], true, "{dry}");
    let dry = sandbox.json(&["take", "fork", "1", "--dry-run"]);
    assert_eq!(dry["preview"]["unrecorded"][0]["path"], "mine.txt", "{dry}");
    for arguments in [&["take", "delete", "main", "--dry-run"][..], &["undo", "--dry-run"]] {
        sandbox.done(arguments);
    }
    assert_eq!(takes(), before);
}

#[test]
fn a_fork_in_a_worktree_creates_one_take_and_keeps_the_active_one() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Say hello"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.done(&["take", "switch", "main"]);
    let folder = sandbox.project().with_file_name("worktree");
    sandbox.done(&["worktree", "add", "second", &folder.to_string_lossy()]);
    let count = || sandbox.json(&["take", "list"])["takes"].as_array().map_or(0, Vec::len);
    let dry = sandbox.run_in(&folder, &["take", "fork", "1", "--dry-run", "--json"], "");
    succeeded(&dry);
    assert_eq!(count(), 2, "a dry run forks nothing");
    succeeded(&sandbox.run_in(&folder, &["take", "fork", "1", "--name", "third"], ""));
    assert_eq!(count(), 3);
    let shown = sandbox.json(&["thread", "show"]).to_string();
    assert!(shown.contains("main"), "{shown}");
}

#[test]
fn a_worktree_that_was_moved_elsewhere_is_recognised_by_every_command() {
    let commands: [&[&str]; 9] = [
        &["status"],
        &["undo", "--dry-run"],
        &["undo", "--yes"],
        &["exec", "--", "true"],
        &["snapshot", "take"],
        &["diff"],
        &["entry", "add", "more"],
        &["take", "list"],
        &["worktree", "remove", "--delete-files"],
    ];
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.agent("echo 1 > a");
    sandbox.done(&["take", "switch", "main"]);
    let mut folder = sandbox.project().with_file_name("worktree");
    sandbox.done(&["worktree", "add", "second", &folder.to_string_lossy()]);
    succeeded(&sandbox.run_in(&folder, &["exec", "--", "sh", "-c", "echo 1 > b"], ""));
    for (number, command) in commands.into_iter().enumerate() {
        let parent = sandbox.project().with_file_name(format!("parent {number}"));
        std::fs::create_dir(&parent).expect("our folder");
        let moved = parent.join("worktree");
        std::fs::rename(&folder, &moved).expect("our folder");
        folder = moved;
        let output = sandbox.run_in(&folder, command, "");
        assert_eq!(output.code, 0, "{command:?}: {}", output.stderr);
    }
    assert!(!folder.exists(), "it was removed where it is");
}

#[test]
fn the_files_of_a_moved_worktree_are_found_from_elsewhere_once_a_command_ran_in_it() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.agent("echo 1 > a");
    sandbox.done(&["take", "switch", "main"]);
    let folder = sandbox.project().with_file_name("worktree");
    sandbox.done(&["worktree", "add", "second", &folder.to_string_lossy()]);
    succeeded(&sandbox.run_in(&folder, &["exec", "--", "sh", "-c", "echo 1 > b"], ""));
    let parent = sandbox.project().with_file_name("parent");
    std::fs::create_dir(&parent).expect("our folder");
    let moved = parent.join("worktree");
    std::fs::rename(&folder, &moved).expect("our folder");
    // A folder that replaced the worktree is not used.
    std::fs::create_dir(&folder).expect("our folder");
    std::fs::write(folder.join("mine"), "precious").expect("our folder");
    succeeded(&sandbox.run_in(&moved, &["take", "list"], ""));
    sandbox.done(&["undo", "-k", "second", "--yes"]);
    assert!(!moved.join("b").exists() && moved.join("a").exists());
    assert_eq!(std::fs::read_to_string(folder.join("mine")).expect("it stayed"), "precious");
}
