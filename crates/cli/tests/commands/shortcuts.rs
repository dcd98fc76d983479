//! Short names of frequent commands.

use crate::support::Sandbox;

fn names(sandbox: &Sandbox) -> Vec<String> {
    let takes = sandbox.json(&["take", "list"])["takes"].as_array().cloned().unwrap_or_default();
    takes.iter().map(|take| take["name"].as_str().expect("a name").to_owned()).collect()
}

/// A thread with the takes `main`, `a`, `b` and `c`; `c` is active.
fn several_takes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Why?"]);
    for name in ["a", "b", "c"] {
        sandbox.done(&["take", "branch", "1", "--name", name]);
    }
    sandbox
}

#[test]
fn shortcuts_do_what_their_commands_do() {
    let sandbox = several_takes();
    for (short, long) in [
        (&["ls"][..], &["thread", "list"][..]),
        (&["show"], &["thread", "show"]),
        (&["show", "--at", "2"], &["thread", "show", "--at", "2"]),
    ] {
        assert_eq!(sandbox.json(short), sandbox.json(long), "{short:?}");
    }
    sandbox.done(&["edit", "1", "Why not?"]);
    sandbox.done(&["fork", "1", "--name", "rephrased"]);
    assert_eq!(sandbox.json(&["draft"])["draft"], "Why not?");
    assert!(sandbox.done(&["version"]).starts_with("retake "));
    assert_eq!(sandbox.done(&["version"]), sandbox.done(&["--version"]));
}

#[test]
fn switch_finds_takes_and_threads() {
    let sandbox = several_takes();
    sandbox.done(&["new", "a"]);
    let place = |sandbox: &Sandbox| {
        let shown = sandbox.json(&["show"]);
        format!("{}/{}", shown["thread"]["title"], shown["take"]["name"]).replace('"', "")
    };
    for (name, expected) in [
        ("Fix the login", "Fix the login/c"),
        ("b", "Fix the login/b"),
        // A name of both is the take of this thread.
        ("a", "Fix the login/a"),
        ("main", "Fix the login/main"),
        ("a/main", "a/main"),
        ("Fix the login/b", "Fix the login/b"),
    ] {
        sandbox.done(&["switch", name]);
        assert_eq!(place(&sandbox), expected, "{name}");
    }
    let (code, error) = sandbox.refused(&["switch", "nothing like it"]);
    assert_eq!(code, 3, "{error}");
}

#[test]
fn several_takes_are_deleted_or_none() {
    let sandbox = several_takes();
    let (code, _) = sandbox.refused(&["take", "delete", "a", "nothing", "b"]);
    assert_eq!((code, names(&sandbox).len()), (3, 4), "nothing was deleted");
    let answer = sandbox.json(&["take", "delete", "a", "c", "a"]);
    assert_eq!(answer["deleted"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(names(&sandbox), ["main", "b"]);
    sandbox.done(&["undo", "2"]);
    assert_eq!(names(&sandbox), ["main", "a", "b", "c"]);
    // The last take cannot be deleted; the answer names those that were.
    let (_, error) = sandbox.refused(&["take", "delete", "a", "b", "c", "main"]);
    assert_eq!(error["deleted"].to_string(), r#"["a","b","c"]"#, "{error}");
    assert_eq!(names(&sandbox), ["main"]);
}

#[test]
fn a_take_is_renamed_by_its_old_name() {
    let sandbox = several_takes();
    sandbox.done(&["take", "rename", "a", "first"]);
    sandbox.done(&["take", "rename", "third"]);
    sandbox.done(&["take", "rename", "-k", "b", "second"]);
    assert_eq!(names(&sandbox), ["main", "first", "second", "third"]);
    let (code, _) = sandbox.refused(&["take", "rename", "-k", "first", "second", "x"]);
    assert_eq!(code, 2);
}
