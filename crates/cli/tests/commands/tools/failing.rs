//! A failed command changes nothing: no thread, no project, no file, and the current thread stays.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::tools::support::{User, command_output, everything_below};

/// Everything that a user can see of the store and of the folders.
fn dump(user: &User) -> BTreeMap<String, String> {
    let mut dump = BTreeMap::new();
    let mut projects = user.json(&["project", "list"])["projects"].clone();
    for project in projects.as_array_mut().expect("a list") {
        project.as_object_mut().expect("a project").remove("last_seen");
    }
    dump.insert("projects".to_owned(), projects.to_string());
    let list = |flags: &[&str]| user.json(&[&["thread", "list"], flags].concat())["threads"].clone();
    dump.insert("deleted".to_owned(), list(&["--all", "--deleted"]).to_string());
    let threads = list(&["--all"]);
    for thread in threads.as_array().expect("a list") {
        let id = thread["id"].as_str().expect("an id");
        dump.insert(format!("{id} history"), user.json(&["history", "-t", id, "--all"]).to_string());
        dump.insert(format!("{id} takes"), user.json(&["take", "list", "-t", id]).to_string());
    }
    dump.insert("threads".to_owned(), threads.to_string());
    for folder in ["project", "elsewhere"] {
        for path in everything_below(&user.path(folder)) {
            let content = if path.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
            dump.insert(path.display().to_string(), String::from_utf8_lossy(&content).into_owned());
        }
    }
    dump
}

fn check(user: &User, commands: &[&[&str]]) {
    let before = dump(user);
    for command in commands {
        let output = user.try_run(command);
        assert_ne!(output.code, 0, "{command:?} was done: {output:?}");
        let after = dump(user);
        for (what, value) in &after {
            assert_eq!(before.get(what), Some(value), "{command:?} changed {what}: {}", output.err);
        }
        assert_eq!(before.len(), after.len(), "{command:?} removed something");
    }
}

/// Commands that fail everywhere.
const EVERYWHERE: &[&[&str]] = &[
    &["run", "--new", "--provider", "nosuch", "hello"],
    &["run", "--provider", "nosuch", "hello"],
    &["run", "--new", "--model", "nosuch", "hello"],
    &["run", "--new", "--provider", "anthropic", "hello"],
    &["run", "--new", "--image", "nosuch.png", "hello"],
    &["run", "--new"],
    &["run", "--draft"],
    &["run", "--thread", "nosuch", "hello"],
    &["run", "--take", "nosuch", "hello"],
    &["run", "--expect", "99", "hello"],
    &["resume"],
    &["resume", "--provider", "nosuch"],
    &["retry", "99"],
    &["retry", "--provider", "nosuch"],
    &["stop"],
    &["steer", "that way"],
    &["exec", "-t", "nosuch", "--", "true"],
    &["thread", "new", " "],
    &["thread", "new", "Fix", "--tag", ""],
    &["thread", "switch", "nosuch"],
    &["thread", "delete", "nosuch"],
    &["take", "switch", "nosuch"],
    &["worktree", "add", "nosuch"],
    &["worktree", "remove"],
    &["take", "promote", "nosuch"],
    &["entry", "edit", "99", "text"],
    &["entry", "add", "text", "--expect", "99"],
    &["entry", "add", "--file", "nosuch"],
    &["settings", "set", "temperature", "hot"],
    &["draft", "attach", "nosuch.png"],
    &["jump", "99"],
    &["restore", "99"],
    &["redo"],
    &["import", "nosuch.retake"],
    &["import", "../bad.retake"],
    &["project", "adopt", "abcdefgh"],
    &["project", "root", "add", "lib", "nosuch"],
    &["project", "forget", "abcdefgh"],
];

#[test]
fn a_failed_command_in_an_empty_folder_changes_nothing() {
    let user = User::new();
    user.write("bad.retake", b"nothing that was exported\n");
    let mut commands = EVERYWHERE.to_vec();
    commands.extend_from_slice(&[
        &["exec", "--", "true"],
        &["snapshot", "take"],
        &["undo"],
        &["retry"],
        &["entry", "add", "text"],
        &["draft", "set", "text"],
        &["compress"],
        &["clear"],
    ]);
    check(&user, &commands);
    let home = user.folder.path().to_str().expect("text");
    check(
        &user,
        &[&["-C", home, "run", "hello"], &["-C", home, "thread", "new"], &["-C", "/", "run", "hello"]],
    );
}

/// The take that the second test creates.
const BRANCH: &str = "main_take_1";

#[test]
fn a_failed_command_in_a_project_changes_nothing() {
    let user = User::new();
    user.write("bad.retake", b"nothing that was exported\n");
    user.write("project/a.txt", b"one\n");
    user.talk("Fix the login");
    user.run(&["thread", "new", "Another"]);
    user.run(&["entry", "add", "hello"]);
    user.run(&["snapshot", "take"]);
    user.run(&["take", "branch"]);
    user.run(&["take", "switch", "main"]);
    let mut commands = EVERYWHERE.to_vec();
    commands.extend_from_slice(&[
        // A take that is switched to before its turn runs.
        &["run", "--take", BRANCH, "--provider", "nosuch", "hello"],
        &["run", "--take", BRANCH, "--draft"],
        &["run", "--take", BRANCH, "--image", "nosuch.png", "hello"],
        &["resume", "--take", BRANCH],
        &["thread", "new", "Another"],
        &["thread", "new", "Fix the login"],
        &["worktree", "add", BRANCH, "."],
        &["worktree", "add", BRANCH, "new/deep/folder"],
    ]);
    check(&user, &commands);
    // Control: the dump notices a change.
    let before = dump(&user);
    user.run(&["entry", "add", "one more"]);
    assert_ne!(before, dump(&user));
    let _: Value = user.json(&["verify"]);
}

/// Runs `chat` with one message; a refusal is reported, and the chat continues.
fn chat(user: &User, arguments: &[&str], message: &str) -> String {
    let mut command = user.command();
    command.arg("chat").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(message.as_bytes()).expect("it reads");
    drop(stdin);
    command_output(child.wait_with_output().expect("it ends")).err
}

#[test]
fn a_turn_whose_folder_cannot_be_opened_changes_nothing() {
    let user = User::new();
    fs::create_dir(user.path("configuration")).expect("a new folder");
    let exclude: &[&[&str]] = &[&["run", "--new", "hello"], &["run", "hello"]];
    user.write("configuration/config.toml", b"[files]\nexclude = [\"{a\"]\n");
    check(&user, exclude);
    fs::remove_file(user.path("configuration/config.toml")).expect("our file");
    user.talk("Fix the login");
    user.run(&["take", "branch"]);
    user.run(&["take", "switch", "main"]);
    user.write("configuration/config.toml", b"[files]\nexclude = [\"{a\"]\n");
    check(&user, exclude);
    check(&user, &[&["run", "--take", BRANCH, "hello"], &["retry", "1"], &["exec", "--", "true"]]);
    let before = dump(&user);
    for arguments in [&[][..], &["--take", BRANCH]] {
        let error = chat(&user, arguments, "hello\n");
        assert!(error.contains("{a"), "{error}");
        assert_eq!(dump(&user), before);
    }
}

#[test]
fn a_turn_in_a_home_folder_that_an_earlier_version_recorded_changes_nothing() {
    let user = User::new();
    let home = user.folder.path();
    // Recorded while it was not the home folder.
    let mut init = user.command();
    init.env("HOME", "/nowhere").current_dir(home).args(["project", "init"]);
    assert_eq!(command_output(init.output().expect("it runs")).code, 0);
    let home = home.to_str().expect("text");
    let thread = ["-C", home, "thread", "new"];
    check(&user, &[&["-C", home, "run", "hello"], &["-C", home, "run", "--new", "hello"], &thread]);
    let error = user.refused(5, &["-C", home, "run", "hello"]);
    assert!(error.contains("home folder"), "{error}");
}

#[test]
fn a_turn_without_a_role_for_its_prompt_changes_nothing() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["draft", "set", "hello"]);
    user.run(&["take", "branch"]);
    user.run(&["draft", "set", "hello"]);
    user.run(&["take", "switch", "main"]);
    user.run(&["role", "remove", "User", "Vendor API", "System"]);
    check(
        &user,
        &[
            &["run", "--new", "hello"],
            &["run", "hello"],
            &["run", "--draft"],
            &["run", "--take", BRANCH, "hello"],
            &["run", "--take", BRANCH, "--draft"],
        ],
    );
    let error = user.refused(5, &["run", "--new", "hello"]);
    assert!(error.contains("role") && !error.contains("fork"), "{error}");
    let before = dump(&user);
    assert!(chat(&user, &["--take", BRANCH], "hello\n").contains("role"));
    assert_eq!(dump(&user), before);
}

#[test]
fn a_turn_that_expects_a_version_may_switch_to_its_take() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["take", "branch"]);
    user.run(&["take", "switch", "main"]);
    let version = user.json(&["thread", "info"])["version"].to_string();
    user.run(&["run", "--take", BRANCH, "--expect", &version, "say hello"]);
}
