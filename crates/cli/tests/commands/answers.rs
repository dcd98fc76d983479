//! What a command says about itself: that its answer could not be written, and what it would not find again.

use std::fs::OpenOptions;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Sandbox;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox
}

/// Runs a command whose standard output is full, and returns its exit code and error.
fn into_a_full_device(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, Value) {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let ran = Command::new(retake_testing::program())
        .args(arguments)
        .arg("--json")
        .current_dir(sandbox.project())
        .env_clear()
        .envs(sandbox.environment())
        .stdout(full)
        .output()
        .expect("the program was just built");
    let error: Value = serde_json::from_slice(&ran.stderr).expect("errors are JSON too");
    (ran.status.code(), error["error"].clone())
}

#[test]
fn a_change_whose_answer_cannot_be_written_is_reported_as_made() {
    let sandbox = sandbox();
    sandbox.agent("echo 1 > a");
    sandbox.agent("echo 2 > a");
    let changes: [&[&str]; 3] = [&["undo"], &["redo"], &["entry", "add", "hello"]];
    for arguments in changes {
        let (code, error) = into_a_full_device(&sandbox, arguments);
        assert_eq!((code, &error["code"]), (Some(7), &json!("answer_not_written")), "{arguments:?}: {error}");
        assert!(error["version"].is_u64() && error["operation"].is_string(), "{arguments:?}: {error}");
        assert!(!error["action"].to_string().contains("etry"), "{error}");
    }
    let text = sandbox.done(&["thread", "show"]);
    assert_eq!(text.matches("hello").count(), 1, "{text}");
    // Control: a command that changes nothing, and a preview, fail as before.
    for arguments in [&["history"][..], &["undo", "--dry-run"]] {
        let (_, error) = into_a_full_device(&sandbox, arguments);
        assert_eq!(error["code"], json!("disk_full"), "{arguments:?}: {error}");
    }
}

#[test]
fn a_saved_version_has_no_name_that_means_something_else() {
    let sandbox = sandbox();
    for name in ["5", "folder", "take:main", "turn:1"] {
        let (code, error) = sandbox.refused(&["save", name]);
        assert_eq!((code, &error["code"]), (5, &json!("refused")), "{name}: {error}");
        assert!(error["message"].to_string().contains("another name"), "{name}: {error}");
    }
    sandbox.done(&["save", "v5"]);
    sandbox.done(&["jump", "v5"]);
}

#[test]
fn files_are_recorded_and_undone_although_switches_leave_them() {
    let sandbox = sandbox();
    sandbox.done(&["config", "set", "files.enabled", "false"]);
    sandbox.write("a", "0\n");
    sandbox.done(&["entry", "add", "one"]);
    sandbox.agent("echo 1 > a; echo new > b");
    sandbox.done(&["take", "branch", "1"]);
    assert_eq!(sandbox.read("b").as_deref(), Some("new\n"), "a branch moves no file");
    sandbox.done(&["take", "switch", "main"]);
    let undone = sandbox.json(&["jump", "2"]);
    assert!(undone["files"]["paths"].as_array().is_some_and(|paths| paths.len() == 2), "{undone}");
    assert_eq!((sandbox.read("a").as_deref(), sandbox.read("b")), (Some("0\n"), None));
}
