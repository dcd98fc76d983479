//! Projects of several folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Sandbox;

fn beside(sandbox: &Sandbox, name: &str) -> PathBuf {
    let path = sandbox.project().with_file_name(name);
    fs::create_dir_all(&path).expect("our folder");
    path
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn files_of_two_roots_move_together() {
    let sandbox = Sandbox::new();
    let lib = beside(&sandbox, "lib");
    let (ours, theirs) = (sandbox.project().join("a"), lib.join("b"));
    fs::write(&ours, "one\n").expect("our folder");
    fs::write(&theirs, "one\n").expect("our folder");
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["snapshot", "take"]);
    sandbox.done(&["project", "root", "add", "lib", "../lib"]);
    let taken = sandbox.json(&["snapshot", "take"]);
    assert_eq!(taken["operation"], serde_json::Value::Null, "a root that is new is no change: {taken}");
    sandbox.done(&["exec", "--", "sh", "-c", "echo two > a; echo two > ../lib/b; echo new > ../lib/c"]);
    let undone = sandbox.done(&["undo"]);
    assert!(undone.contains("lib:b") && undone.contains("lib:c"), "{undone}");
    assert_eq!((read(&ours).as_deref(), read(&theirs).as_deref()), (Some("one\n"), Some("one\n")));
    assert_eq!(read(&lib.join("c")), None);
    sandbox.done(&["redo"]);
    assert_eq!((read(&ours).as_deref(), read(&theirs).as_deref()), (Some("two\n"), Some("two\n")));
    sandbox.done(&["restore", "1", "../lib/b"]);
    assert_eq!(read(&theirs).as_deref(), Some("one\n"));

    // A path is understood as reports write it.
    sandbox.done(&["undo"]);
    sandbox.done(&["restore", "1", "lib:b"]);
    assert_eq!(read(&theirs).as_deref(), Some("one\n"));
    assert!(sandbox.done(&["diff", "1", "2", "--", "lib:b"]).contains("two"));
    assert!(sandbox.done(&["blame", "lib:b"]).contains("one"));
    assert!(sandbox.done(&["log", "lib:b"]).contains("changed"));

    // The files of a removed root are not changed, and the report names them.
    assert!(sandbox.done(&["project", "root", "list"]).starts_with("lib  "));
    sandbox.done(&["project", "root", "remove", "lib"]);
    // Undoes the restore and the command.
    for undo in [&["undo", "2", "--dry-run"][..], &["undo", "2"]] {
        let undone = sandbox.json(undo);
        let paths = undone["files"]["paths"].as_array().expect("paths");
        let missing = paths
            .iter()
            .find(|path| path["root"] == "lib" && path["path"] == "b")
            .expect("the path of the removed root");
        assert_eq!(missing["outcome"], "skipped", "{undone}");
    }
    assert_eq!((read(&ours).as_deref(), read(&theirs).as_deref()), (Some("one\n"), Some("one\n")));
    assert_eq!(read(&lib.join("c")).as_deref(), Some("new\n"), "only the project's own folder moved");
    sandbox.done(&["verify"]);
}

#[test]
fn the_store_cannot_be_a_root_of_a_project() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    let store = sandbox.project().with_file_name("store");
    for path in [store.clone(), store.join("folders"), store.with_file_name("")] {
        fs::create_dir_all(&path).expect("our folder");
        let (code, error) = sandbox.refused(&["project", "root", "add", "lib", &path.to_string_lossy()]);
        assert_eq!(code, 5, "{error}");
    }
    let (_, error) = sandbox.refused(&["project", "root", "add", "lib", &store.to_string_lossy()]);
    assert!(error["message"].as_str().is_some_and(|message| message.contains("the store")), "{error}");
    assert!(!sandbox.done(&["project", "root", "list"]).contains("lib"));
}

#[test]
fn folders_that_share_files_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    let other = beside(&sandbox, "other");
    let run = sandbox.run_in(&other, &["thread", "new", "Another project"], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = sandbox.run_in(&other, &["snapshot", "take"], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for inside in ["../lib/inner", "inner", "../other/inner"] {
        fs::create_dir_all(sandbox.project().join(inside)).expect("our folder");
    }
    sandbox.done(&["project", "root", "add", "lib", "../lib"]);
    let check = |name: &str, path: &str, code: i32, expected: &str| {
        let (found, error) = sandbox.refused(&["project", "root", "add", name, path]);
        let message = error["message"].as_str().expect("a message");
        assert_eq!(found, code, "{name} {path}: {message}");
        assert!(message.contains(expected), "{name} {path}: {message}");
    };
    check("lib", "../new", 5, "existing folder");
    check("lib", "../other", 5, "already in use");
    check("deep", "../lib/inner", 5, "inside");
    check("own", "inner", 5, "inside");
    check("around", "..", 5, "");
    check("theirs", "../other", 5, "share files");
    check("theirs", "../other/inner", 5, "share files");
    check("a/b", "../new", 2, "not a valid name");
    check("", "../new", 2, "not a valid name");
    let (code, _) = sandbox.refused(&["project", "root", "remove", "nothing"]);
    assert_eq!(code, 3);
    assert_eq!(sandbox.json(&["project", "root", "list"])["roots"].as_array().map(Vec::len), Some(1));
}

#[test]
fn another_folder_at_the_path_of_a_root_is_refused_and_unchanged() {
    let sandbox = Sandbox::new();
    let lib = beside(&sandbox, "lib");
    let write = |folder: &Path| {
        fs::write(folder.join("f"), "changed\n").expect("our folder");
        fs::write(folder.join("g"), "new\n").expect("our folder");
    };
    fs::write(lib.join("f"), "one\n").expect("our folder");
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["project", "root", "add", "lib", "../lib"]);
    sandbox.done(&["exec", "--", "sh", "-c", "echo changed > ../lib/f; echo new > ../lib/g"]);
    let moved = lib.with_file_name("lib-moved");
    fs::rename(&lib, &moved).expect("our folder");
    fs::create_dir(&lib).expect("our folder");
    write(&lib);
    for command in [&["undo"][..], &["undo", "--dry-run"], &["snapshot", "take"], &["restore", "1"]] {
        let (code, error) = sandbox.refused(command);
        let message = error["message"].as_str().expect("a message");
        assert_eq!(code, 5, "{command:?}: {message}");
        assert!(message.contains("retake project root add lib"), "{command:?}: {message}");
    }
    assert_eq!(read(&lib.join("f")).as_deref(), Some("changed\n"), "it is another folder");
    assert!(lib.join("g").exists());
    assert!(sandbox.done(&["project", "root", "list"]).contains("(missing)"));
    // Another root does not make it valid.
    beside(&sandbox, "more");
    sandbox.done(&["project", "root", "add", "more", "../more"]);
    sandbox.refused(&["undo"]);

    sandbox.done(&["project", "root", "add", "lib", "../lib-moved"]);
    sandbox.done(&["undo"]);
    assert_eq!(read(&moved.join("f")).as_deref(), Some("one\n"));
    assert_eq!(read(&moved.join("g")), None);
    assert!(lib.join("g").exists(), "no other folder was touched");
}
