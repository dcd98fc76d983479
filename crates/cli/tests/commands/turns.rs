//! Turns on the command line: listed, named by their numbers, and undone by name.

use serde_json::Value;

use crate::support::Sandbox;

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    for prompt in ["create a.txt with one", "create b.txt with two", "create a.txt with three"] {
        sandbox.done(&["run", "--approve", "all", prompt]);
    }
    sandbox
}

#[test]
fn turns_are_listed_and_shown() {
    let sandbox = project();
    let listed = sandbox.json(&["turns"]);
    assert_eq!((&listed["count"], &listed["next"]), (&Value::from(3), &Value::Null));
    let last = &listed["turns"][0];
    assert_eq!(
        (last["number"].as_u64(), last["prompt"].as_str()),
        (Some(3), Some("create a.txt with three"))
    );
    assert_eq!((last["files"][0]["path"].as_str(), last["file_count"].as_u64()), (Some("a.txt"), Some(1)));
    assert_eq!((last["status"].as_str(), last["calls"].as_u64()), (Some("finished"), Some(1)));
    assert_eq!(last["micro_dollars"], 0);
    assert_eq!(sandbox.json(&["turns", "-n", "1"])["next"], 3);
    assert_eq!(sandbox.json(&["turns", "--before", "3", "-n", "1"])["turns"][0]["number"], 2);
    let shown = sandbox.json(&["show", "turn:2"]);
    assert_eq!(shown["added"].as_array().map(Vec::len), shown["entries"].as_array().map(Vec::len));
    assert_eq!(shown["changes"]["files"][0]["path"], "b.txt");
    let text = sandbox.done(&["show", "turn:2"]);
    assert!(text.starts_with("turn 2 \"create b.txt with two\"\n") && text.contains("b.txt"), "{text}");
    let history = sandbox.done(&["history"]);
    assert!(history.contains("turn 3 \"create a.txt with three\""), "{history}");
    assert_eq!(sandbox.json(&["history"])["operations"][0]["in_turn"]["number"], 3);
}

#[test]
fn a_turn_is_a_revision() {
    let sandbox = project();
    let names = |arguments: &[&str]| sandbox.done(&[arguments, &["--name-only"]].concat());
    assert_eq!(names(&["diff", "turn:2"]), "b.txt\n");
    assert_eq!(names(&["diff", "--of", "turn:last"]), "a.txt\n");
    assert_eq!(names(&["diff", "turn:1", "turn:3"]), "a.txt\nb.txt\n");
    let blame = sandbox.done(&["blame", "a.txt"]);
    assert!(blame.contains("turn 3 \"create a.txt with three\""), "{blame}");
    let blame = sandbox.json(&["blame", "a.txt", "--at", "turn:2"]);
    assert_eq!(blame["lines"][0]["text"], "one");
    assert_eq!(blame["origins"][0]["in_turn"]["number"], 1);
    let shown = sandbox.json(&["show", "--at", "turn:1"]);
    assert_eq!(shown["entries"][0]["entry"]["content"], "create a.txt with one");
    assert!(shown["entries"].as_array().is_some_and(|entries| entries.len() < 6), "{shown}");
    sandbox.done(&["restore", "turn:1", "--", "a.txt"]);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    let (code, error) = sandbox.refused(&["diff", "turn:9"]);
    assert!(code == 3 && error.to_string().contains("`turn:1` to `turn:3`"), "{error}");
}

#[test]
fn an_undo_names_the_prompts_that_it_takes_back() {
    let sandbox = project();
    let undone = sandbox.done(&["undo", "--to", "turn:1"]);
    let expected = "Undid turn 3 \"create a.txt with three\"\nUndid turn 2 \"create b.txt with two\"\n";
    assert!(undone.starts_with(expected), "{undone}");
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    assert!(!sandbox.project().join("b.txt").exists());
    let redone = sandbox.json(&["redo", "2"]);
    assert_eq!((&redone["turns"][0]["number"], &redone["turns"][1]["number"]), (&2.into(), &3.into()));
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("three\n"));
    let (code, _) = sandbox.refused(&["undo", "--to", "turn:3"]);
    assert_eq!(code, 5);
    sandbox.done(&["jump", "turn:2"]);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
}
