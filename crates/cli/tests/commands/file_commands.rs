//! `diff`, `log` and `blame`, as text and as JSON.

use std::fs;

use crate::support::Sandbox;

/// A project in which the user and an agent changed the same files.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let write = |name: &str, text: &str| fs::write(sandbox.project().join(name), text).expect("our folder");
    sandbox.done(&["thread", "new", "Fix the login"]);
    write("login.rs", "fn login() {\n    let key = weekday();\n    cache.get(key)\n}\n");
    write("todo.md", "one\ntwo\nthree\nfour\n");
    sandbox.done(&["snapshot", "take"]);
    agent(&sandbox, "sed -i 's/weekday()/date()/' login.rs && mv todo.md notes.md && echo five >> notes.md");
    write(
        "login.rs",
        "fn login() {\n    // Never by weekday.\n    let key = date();\n    cache.get(key)\n}\n",
    );
    write("data.bin", "a\0b");
    sandbox
}

fn agent(sandbox: &Sandbox, script: &str) {
    sandbox.done(&["exec", "--by", "agent", "--", "sh", "-c", script]);
}

fn screen(sandbox: &Sandbox, arguments: &[&str]) -> String {
    sandbox.redact(&sandbox.screen(100, arguments).join("\n"))
}

#[test]
fn differences_are_printed() {
    let sandbox = project();
    insta::assert_snapshot!("diff_by_hand", screen(&sandbox, &["diff"]));
    let run = sandbox.json(&["log", "notes.md"])["operations"][0]["version"].to_string();
    insta::assert_snapshot!("diff_of", screen(&sandbox, &["diff", "--of", &run]));
    insta::assert_snapshot!("diff_of_word", screen(&sandbox, &["diff", "--of", &run, "--word"]));
    insta::assert_snapshot!("diff_stat", screen(&sandbox, &["diff", "1", "--stat"]));
    assert_eq!(sandbox.done(&["diff", "1", "--name-only"]), "data.bin\nlogin.rs\nnotes.md\n");
    assert_eq!(sandbox.done(&["diff", "1", "folder", "--name-only", "--", "login.rs"]), "login.rs\n");
    assert_eq!(sandbox.done(&["diff", "1", "--name-only", "--", "todo.md"]), "notes.md\n");
}

#[test]
fn the_log_and_blame_of_a_file_are_printed() {
    let sandbox = project();
    insta::assert_snapshot!("log_renamed", screen(&sandbox, &["log", "notes.md"]));
    insta::assert_snapshot!("blame_login", screen(&sandbox, &["blame", "login.rs"]));
    insta::assert_snapshot!("blame_some", screen(&sandbox, &["blame", "notes.md", "--line", "4,5"]));
}

#[test]
fn an_empty_result_is_noted_on_standard_error() {
    let sandbox = project();
    let output = sandbox.run(&["diff", "folder", "folder"]);
    assert_eq!((output.stdout.as_str(), output.code), ("", 0));
    assert!(output.stderr.contains("No differences"), "{}", output.stderr);
}

#[test]
fn json_output_has_every_field() {
    let sandbox = project();
    let diff = sandbox.json(&["diff"]);
    assert_eq!(diff["stat"]["files"], 2);
    let login = &diff["files"][1];
    assert_eq!((login["path"].as_str(), login["change"].as_str()), (Some("login.rs"), Some("changed")));
    assert_eq!(login["lines"]["added"], 1);
    assert_eq!(login["hunks"][0]["lines"][1]["side"], "added");
    assert_eq!(diff["files"][0]["content"], "binary");
    assert_eq!(diff["to"]["name"], "the folder");

    let log = sandbox.json(&["log", "notes.md"]);
    assert_eq!(log["operations"][0]["change"], "renamed");
    assert_eq!(log["operations"][0]["from"], "todo.md");
    assert_eq!(log["operations"][0]["actor"]["type"], "agent");
    assert_eq!(log["next"], serde_json::Value::Null);

    let blame = sandbox.json(&["blame", "login.rs"]);
    let origin = |line: usize| {
        let origin = blame["lines"][line]["origin"].as_u64().expect("it was seen to come") as usize;
        blame["origins"][origin]["actor"]["type"].clone()
    };
    assert_eq!(origin(1), "human");
    assert_eq!(origin(2), "agent");
}

#[test]
fn lines_restored_by_an_undo_keep_their_origin() {
    let sandbox = project();
    agent(&sandbox, "echo wrecked > login.rs");
    sandbox.done(&["undo"]);
    let blame = sandbox.json(&["blame", "login.rs"]);
    let kinds: Vec<&str> = blame["origins"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|origin| origin["kind"]["type"].as_str().expect("a kind"))
        .collect();
    assert!(!kinds.contains(&"undone"), "{kinds:?}");
    assert!(kinds.contains(&"files_changed"), "{kinds:?}");
}

#[test]
fn a_revision_is_a_version_name_take_or_snapshot() {
    let sandbox = project();
    sandbox.done(&["save", "here it is"]);
    agent(&sandbox, "echo more >> notes.md");
    for moment in ["here it is", "take:main", "folder", "2"] {
        sandbox.done(&["diff", moment, "--stat"]);
    }
    let saved = sandbox.json(&["diff", "here it is"]);
    let names: Vec<&str> =
        saved["files"].as_array().expect("a list").iter().filter_map(|file| file["path"].as_str()).collect();
    assert!(names.contains(&"notes.md"), "{names:?}");
    let snapshot = saved["from"]["snapshot"].as_str().expect("an id")[..12].to_owned();
    assert_eq!(sandbox.json(&["diff", &snapshot])["files"], saved["files"]);
}

#[test]
fn missing_and_refused_objects_have_their_exit_codes() {
    let sandbox = project();
    let code = |arguments: &[&str]| sandbox.refused(arguments).0;
    assert_eq!(code(&["diff", "no such moment"]), 3);
    assert_eq!(code(&["diff", "9999"]), 3);
    assert_eq!(sandbox.run(&["diff", "--", "../outside"]).code, 2);
    assert_eq!(code(&["log", "/etc/passwd"]), 2);
    assert_eq!(code(&["log", "never-was.txt"]), 3);
    assert_eq!(code(&["blame", "never-was.txt"]), 3);
    assert_eq!(code(&["blame", "data.bin"]), 5);
    assert_eq!(code(&["blame", "login.rs", "--line", "90,99"]), 3);
    assert_eq!(sandbox.run(&["blame", "login.rs", "--line", "0"]).code, 2);
}

#[test]
fn names_and_content_cannot_take_over_the_terminal() {
    let sandbox = project();
    let name = "evil\u{1b}[2J.txt";
    fs::write(sandbox.project().join(name), "one\u{1b}]0;title\u{7}\nends\r\n").expect("our folder");
    for arguments in [
        &["diff", "1"][..],
        &["diff", "1", "--stat"],
        &["diff", "1", "--name-only"],
        &["diff", "1", "--word"],
        &["log", name],
        &["blame", name],
    ] {
        let output = sandbox.run(&[arguments, &["--color", "never"]].concat());
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        assert!(!output.stdout.contains(['\u{1b}', '\u{7}', '\r']), "{arguments:?}: {:?}", output.stdout);
    }
}

#[test]
fn paths_are_relative_to_the_current_folder() {
    let sandbox = project();
    let folder = sandbox.project().join("deep/down");
    fs::create_dir_all(&folder).expect("our folder");
    let output = sandbox.run_in(&folder, &["blame", "../../login.rs", "--json"], "");
    assert_eq!(output.code, 0, "{}", output.stderr);
}
