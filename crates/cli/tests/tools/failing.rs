//! A command that fails changes nothing: no thread, no project, no file, and the same thread is current.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{User, everything_below};

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
        let said = user.try_run(command);
        assert_ne!(said.code, 0, "{command:?} was done: {said:?}");
        let after = dump(user);
        for (what, value) in &after {
            assert_eq!(before.get(what), Some(value), "{command:?} changed {what}: {}", said.err);
        }
        assert_eq!(before.len(), after.len(), "{command:?} removed something");
    }
}

/// Commands that fail wherever they are run.
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
    &["take", "open", "nosuch", "--apart"],
    &["take", "close"],
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

/// The take that the second test makes.
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
        // A take that is switched to before a turn runs in it.
        &["run", "--take", BRANCH, "--provider", "nosuch", "hello"],
        &["run", "--take", BRANCH, "--draft"],
        &["run", "--take", BRANCH, "--image", "nosuch.png", "hello"],
        &["resume", "--take", BRANCH],
        &["thread", "new", "Another"],
        &["thread", "new", "Fix the login"],
        &["take", "open", BRANCH, "--apart", "."],
        &["take", "open", BRANCH, "--apart", "new/deep/folder"],
    ]);
    check(&user, &commands);
    // The dump notices a change, or the rest would prove nothing.
    let before = dump(&user);
    user.run(&["entry", "add", "one more"]);
    assert_ne!(before, dump(&user));
    let _: Value = user.json(&["verify"]);
}
