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
fn the_changes_of_a_turn_leave_out_edits_by_hand() {
    let sandbox = project();
    // Recorded when the first tool of the next turn starts.
    sandbox.write("mine.txt", "by hand");
    sandbox.write("b.txt", "by hand too");
    sandbox.done(&["run", "--approve", "all", "create c.txt with three\ncreate b.txt with four"]);
    for arguments in [&["diff", "turn:4"][..], &["diff", "--of", "turn:last"], &["show", "turn:4"]] {
        let answer = sandbox.json(arguments);
        let changes = if arguments[0] == "show" { &answer["changes"] } else { &answer };
        let paths = changes["files"].as_array().expect("files").iter().map(|file| file["path"].as_str());
        assert_eq!(paths.collect::<Vec<_>>(), [Some("b.txt"), Some("c.txt")], "{arguments:?}");
        assert_eq!(changes["outside_turn"], serde_json::json!([{"path": "mine.txt"}]), "{arguments:?}");
    }
    assert_eq!(sandbox.done(&["diff", "turn:4", "--name-only"]), "b.txt\nc.txt\n");
    let output = sandbox.run(&["diff", "turn:4"]);
    let notes = &output.stderr;
    assert!(notes.contains("Left out") && notes.contains("mine.txt"), "{notes}");
    // Two revisions are compared as they are.
    assert_eq!(sandbox.done(&["diff", "turn:3", "turn:4", "--name-only"]), "b.txt\nc.txt\nmine.txt\n");
}

#[test]
fn a_promoted_thread_names_the_thread_with_its_earlier_turns() {
    let sandbox = project();
    sandbox.done(&["take", "branch", "--name", "second"]);
    let promoted = sandbox.json(&["take", "promote", "main", "--switch"]);
    assert_eq!(sandbox.json(&["turns"])["count"], 0);
    let output = sandbox.run(&["turns"]);
    let notes = &output.stderr;
    assert!(notes.contains("before the promotion are in thread Fix the login"), "{notes}");
    assert!(promoted["switched"].as_bool() == Some(true), "{promoted}");
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

#[test]
fn a_preview_names_the_prompts_first() {
    let sandbox = project();
    let check = |arguments: &[&str], verb: &str, expected: &[(u64, &str)]| {
        let arguments = [arguments, &["--dry-run"]].concat();
        let text = sandbox.done(&arguments);
        let lines: Vec<String> =
            expected.iter().map(|(number, prompt)| format!("{verb} turn {number} \"{prompt}\"\n")).collect();
        assert!(text.starts_with(&lines.concat()), "{arguments:?}: {text}");
        let count = text.lines().filter(|line| line.starts_with("Would ")).count();
        assert!(count <= expected.len() + 1, "{arguments:?}: {text}");
        let turns = sandbox.json(&arguments)["preview"]["turns"].clone();
        let found: Vec<_> = turns
            .as_array()
            .expect("a list")
            .iter()
            .map(|turn| (turn["number"].as_u64().expect("a number"), turn["prompt"].as_str().expect("text")))
            .collect();
        assert_eq!(found, expected, "{arguments:?}");
    };
    let (one, two, three) =
        ((1, "create a.txt with one"), (2, "create b.txt with two"), (3, "create a.txt with three"));
    // An edit by hand would be recorded first.
    sandbox.write("mine.txt", "by hand");
    check(&["undo"], "Would undo", &[three]);
    check(&["undo", "--to", "turn:1"], "Would undo", &[three, two]);
    check(&["undo", "3", "--conversation"], "Would undo", &[three, two, one]);
    check(&["undo", "--files"], "", &[]);
    check(&["jump", "turn:2"], "Would pass", &[three]);
    sandbox.done(&["undo", "2"]);
    check(&["undo"], "Would undo", &[one]);
    check(&["redo"], "Would redo", &[two]);
    check(&["redo", "2"], "Would redo", &[two, three]);
    sandbox.done(&["redo", "2"]);
    check(&["take", "branch"], "", &[]);
    // Another take has its own numbers.
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.done(&["run", "say hi"]);
    check(&["undo"], "Would undo", &[(4, "say hi")]);
}

#[test]
fn any_version_is_read_without_going_there() {
    let sandbox = project();
    sandbox.done(&["run", "--approve", "all", "create sub/c.txt with four"]);
    sandbox.write("a.txt", "by hand\n");
    let before = sandbox.json(&["history", "-n", "1"])["operations"][0]["version"].clone();
    let check =
        |arguments: &[&str], expected: &str| assert_eq!(sandbox.done(arguments), expected, "{arguments:?}");
    check(&["cat", "a.txt", "--at", "turn:1"], "one\n");
    check(&["cat", "a.txt", "--at", "turn:3"], "three\n");
    check(&["ls-files", "--at", "turn:1"], "a.txt\n");
    check(&["ls-files", "--at", "turn:last"], "a.txt\nb.txt\nsub/c.txt\n");
    check(&["ls-files", "sub", "--at", "turn:4"], "sub/c.txt\n");
    let json = sandbox.json(&["cat", "b.txt", "--at", "turn:2"]);
    assert_eq!((json["text"].as_str(), json["bytes"].as_u64()), (Some("two\n"), Some(4)));
    let json = sandbox.json(&["ls-files", "--at", "turn:4", "-n", "2"]);
    assert_eq!((json["files"].as_array().map(Vec::len), json["more"].as_bool()), (Some(2), Some(true)));
    let hits = |words: &str, at: &str| {
        let found = sandbox.json(&["search", words, "--at", at]);
        found["hits"].as_array().expect("a list").iter().map(|hit| hit["number"].as_u64()).collect::<Vec<_>>()
    };
    assert!(hits("three", "turn:2").is_empty());
    assert_eq!(hits("create", "turn:1").first(), Some(&Some(1)));
    assert!(hits("create", "turn:3").len() > hits("create", "turn:1").len());
    for (arguments, code) in [
        (&["cat", "b.txt", "--at", "turn:1"][..], 3),
        (&["cat", "sub", "--at", "turn:4"], 2),
        (&["ls-files", "nowhere", "--at", "turn:4"], 3),
        (&["search", "x", "--at", "turn:7"], 3),
    ] {
        assert_eq!(sandbox.refused(arguments).0, code, "{arguments:?}");
    }
    // Nothing moved, and nothing was recorded.
    assert_eq!(sandbox.json(&["history", "-n", "1"])["operations"][0]["version"], before);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("by hand\n"));
    check(&["cat", "a.txt"], "by hand\n");
}

/// The names of the takes, sorted.
fn takes(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.json(&["take", "list"]);
    let takes = listed["takes"].as_array().expect("a list").iter();
    let mut names: Vec<String> =
        takes.map(|take| take["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

#[test]
fn keeping_a_take_deletes_its_alternatives_and_one_undo_brings_them_back() {
    let sandbox = project();
    sandbox.done(&["retry", "--approve", "all", "last", "create a.txt with other"]);
    sandbox.done(&["take", "rename", "second"]);
    sandbox.done(&["take", "switch", "main"]);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("three\n"));
    let preview = sandbox.json(&["keep", "second", "--dry-run"]);
    assert_eq!(preview["preview"]["kind"]["deleted"], serde_json::json!(["main"]));
    assert_eq!(
        (takes(&sandbox), sandbox.read("a.txt").as_deref()),
        (vec!["main".into(), "second".into()], Some("three\n"))
    );
    let kept = sandbox.json(&["keep", "second"]);
    assert_eq!((&kept["deleted"], &kept["take"]["name"]), (&serde_json::json!(["main"]), &"second".into()));
    assert_eq!((takes(&sandbox), sandbox.read("a.txt").as_deref()), (vec!["second".into()], Some("other\n")));
    sandbox.done(&["undo"]);
    assert_eq!(
        (takes(&sandbox), sandbox.read("a.txt").as_deref()),
        (vec!["main".into(), "second".into()], Some("three\n"))
    );
    let text = sandbox.done(&["keep", "main"]);
    assert!(text.starts_with("Kept main and deleted second. "), "{text}");
    assert_eq!(sandbox.done(&["keep", "main"]), "main is the active take, and has no alternatives.\n");
    sandbox.done(&["undo"]);
    assert_eq!(takes(&sandbox), ["main", "second"]);
}

#[test]
fn a_take_is_merged_with_its_files_and_its_conclusion() {
    let sandbox = project();
    sandbox.done(&["retry", "--approve", "all", "--name", "second", "last", "create c.txt with other"]);
    sandbox.done(&["take", "switch", "main"]);
    let entries = sandbox.json(&["turns"])["count"].clone();
    let preview = sandbox.json(&["merge", "second", "--dry-run"]);
    assert_eq!(preview["preview"]["kind"]["type"], "take_merged");
    assert_eq!(preview["files"]["paths"][0]["path"], "c.txt");
    assert_eq!(sandbox.read("c.txt"), None);
    let merged = sandbox.json(&["merge", "second"]);
    assert_eq!(sandbox.read("c.txt").as_deref(), Some("other\n"));
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("three\n"), "the other take did not undo this turn");
    let shown = sandbox.json(&["entry", "show", &merged["entry"].to_string()]);
    assert!(shown["entry"]["content"].to_string().contains("Conclusion of take \\\"second\\\""), "{shown}");
    assert_eq!(shown["entry"]["merged_from"]["name"], "second");
    assert_eq!(sandbox.json(&["turns"])["count"], entries);
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("c.txt"), None);
    let text = sandbox.done(&["merge", "second", "--files"]);
    assert!(text.starts_with("Merged second into main. "), "{text}");
    let text = sandbox.done(&["merge", "second", "--files"]);
    assert!(text.starts_with("second has nothing that main lacks."), "{text}");
    assert_eq!(sandbox.refused(&["merge", "main"]).0, 5);
}
