//! Sending drafts, and saving refused texts.

use crate::support::Sandbox;

fn forked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Why does it fail?"]);
    sandbox.done(&["entry", "add", "--role", "AI", "The cache."]);
    sandbox.done(&["entry", "add", "Fix it."]);
    sandbox.done(&["take", "fork", "3"]);
    sandbox
}

fn texts(sandbox: &Sandbox) -> Vec<String> {
    let shown = sandbox.json(&["thread", "show", "--all"]);
    let text = |view: &serde_json::Value| view["entry"]["content"].as_str().expect("text").to_owned();
    shown["entries"].as_array().expect("a list").iter().map(text).collect()
}

fn draft(sandbox: &Sandbox) -> String {
    sandbox.json(&["draft"])["draft"].as_str().expect("text").to_owned()
}

#[test]
fn a_forked_draft_is_sent_as_one_step() {
    let sandbox = forked();
    sandbox.done(&["draft", "set", "Fix it, and add a test."]);
    let before = sandbox.json(&["thread", "show"])["thread"]["version"].as_u64().expect("a number");
    let sent = sandbox.json(&["entry", "add", "--draft"]);
    assert_eq!(sent["version"], before + 1, "one operation");
    assert_eq!(sent["kind"]["type"], "entries_added");
    assert_eq!(texts(&sandbox), ["Why does it fail?", "The cache.", "Fix it, and add a test."]);
    assert_eq!(sandbox.json(&["entry", "show", "3"])["entry"]["role"], "User");
    assert_eq!(draft(&sandbox), "");

    sandbox.done(&["undo"]);
    assert_eq!(texts(&sandbox).len(), 2);
    assert_eq!(draft(&sandbox), "Fix it, and add a test.");
    sandbox.done(&["redo"]);
    assert_eq!((texts(&sandbox).len(), draft(&sandbox)), (3, String::new()));
    // The source take is unchanged.
    let main = sandbox.json(&["thread", "show", "-k", "main"]);
    assert_eq!(main["entries"][2]["entry"]["content"], "Fix it.");
}

#[test]
fn a_draft_can_be_sent_in_another_role_and_from_another_take() {
    let sandbox = forked();
    sandbox.done(&["take", "switch", "main"]);
    sandbox.done(&["entry", "add", "--draft", "-k", "main_take_1", "--role", "Reviewer"]);
    let other = sandbox.json(&["entry", "show", "last", "-k", "main_take_1"]);
    assert_eq!(
        (&other["entry"]["role"], &other["entry"]["content"]),
        (&"Reviewer".into(), &"Fix it.".into())
    );
    assert_eq!(texts(&sandbox).len(), 3, "main is untouched");
}

#[test]
fn sending_a_draft_requires_a_draft_and_no_other_content() {
    let sandbox = forked();
    sandbox.done(&["draft", "set", " \n "]);
    let (code, error) = sandbox.refused(&["entry", "add", "--draft"]);
    assert_eq!(code, 5);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("main_take_1")), "{error}");
    assert_eq!(sandbox.refused(&["entry", "add", "--draft", "--expect", "1"]).0, 4, "a conflict goes first");
    for beside in [&["text"][..], &["--file", "x"], &["--fields"], &["--image", "x"]] {
        let arguments = [&["entry", "add", "--draft"], beside].concat();
        assert_eq!(sandbox.run(&arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn typed_text_is_saved_if_the_change_is_refused() {
    let sandbox = forked();
    let editor = ("EDITOR", "sh -c 'printf \"written by hand\" > \"$1\"' sh");
    for command in [
        &["entry", "add"][..],
        &["entry", "insert", "1"],
        &["entry", "edit", "1"],
        &["entry", "add", "--fields"],
        &["draft", "set"],
        &["settings", "set", "base_system_prompt"],
    ] {
        let arguments = [command, &["--expect", "1"]].concat();
        let (lines, code) = sandbox.on_terminal(200, &arguments, &[editor]);
        assert!(code == 4 || code == 2, "{command:?}: {lines:?}");
        let kept = lines.iter().find_map(|line| line.split_once("Your text was saved to "));
        let path = kept.unwrap_or_else(|| panic!("{command:?}: {lines:?}")).1;
        let text = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(text, "written by hand", "{command:?}");
        std::fs::remove_file(path).expect("it is ours");
    }
}

#[test]
fn pictures_are_sent_with_a_draft() {
    let sandbox = forked();
    for (name, bytes) in [("a.gif", "GIF89a a"), ("b.gif", "GIF89a b"), ("c.txt", "no picture")] {
        sandbox.write(name, bytes);
    }
    assert_eq!(sandbox.refused(&["draft", "attach", "a.gif", "c.txt"]).0, 2);
    assert_eq!(sandbox.json(&["draft"])["pictures"], serde_json::json!([]), "all or none");
    let done = sandbox.done(&["draft", "attach", "a.gif", "b.gif"]);
    assert!(done.starts_with("Draft of main_take_1: “Fix it. (and 2 pictures)”."), "{done}");
    assert_eq!(sandbox.done(&["draft", "attach", "b.gif"]), "Nothing to change.\n");
    let shown = sandbox.json(&["draft"]);
    let name = shown["pictures"][1]["picture"].as_str().expect("a name");
    let text = sandbox.done(&["draft"]);
    assert!(text.contains("picture 2") && text.contains(&name[..12]), "{text}");
    for none in ["0", "3", "zzzz", ""] {
        assert_eq!(sandbox.refused(&["draft", "detach", none]).0, 3, "{none:?}");
    }
    sandbox.done(&["draft", "detach", "1"]);
    sandbox.done(&["entry", "add", "--draft"]);
    let entry = sandbox.json(&["entry", "show", "last"]);
    let images: Vec<&str> = entry["entry"]["blocks"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter_map(|block| block["blob"].as_str())
        .collect();
    assert_eq!(images, [name]);
    sandbox.done(&["undo"]);
    sandbox.done(&["draft", "detach", &name[..6]]);
    assert_eq!(draft(&sandbox), "Fix it.");
    sandbox.done(&["draft", "attach", "a.gif"]);
    sandbox.done(&["draft", "clear"]);
    let cleared = sandbox.json(&["draft"]);
    assert_eq!((&cleared["draft"], &cleared["pictures"]), (&"".into(), &serde_json::json!([])));
}

#[test]
fn redacting_a_picture_keeps_a_file_with_the_same_content() {
    let sandbox = forked();
    sandbox.write("a.gif", "GIF89a a");
    sandbox.write("b.gif", "GIF89a b");
    sandbox.done(&["exec", "--", "sh", "-c", "rm b.gif; echo 1 > other"]);
    for (name, kept) in [("a.gif", 1), ("c.gif", 0)] {
        sandbox.write("c.gif", "GIF89a c");
        sandbox.done(&["draft", "set", "See the picture"]);
        sandbox.done(&["draft", "attach", name]);
        std::fs::remove_file(sandbox.project().join("c.gif")).expect("it is ours");
        sandbox.done(&["entry", "add", "--draft"]);
        let redacted = sandbox.json(&["redact", "last", "--yes"]);
        assert_eq!(redacted["retained_pictures"].as_array().map(Vec::len), Some(kept), "{name}: {redacted}");
    }
    sandbox.done(&["exec", "--", "rm", "a.gif"]);
    sandbox.done(&["undo", "--yes"]);
    assert_eq!(sandbox.read("a.gif").as_deref(), Some("GIF89a a"));
}

#[test]
fn special_files_are_refused_and_never_block() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "one"]);
    let pipe = sandbox.project().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let pipe = pipe.to_string_lossy().into_owned();
    for path in [pipe.as_str(), "/dev/zero"] {
        for command in [
            &["draft", "attach", path][..],
            &["draft", "set", "--file", path],
            &["entry", "add", "--file", path],
            &["entry", "edit", "1", "--file", path],
            &["run", "--image", path, "say hello"],
            &["redact", "--text-file", path, "--yes"],
            &["import", path],
        ] {
            let (code, error) = sandbox.refused(command);
            assert_ne!(code, 0, "{command:?}");
            let message = error.to_string();
            assert!(message.contains("not a regular file"), "{command:?}: {message}");
        }
    }
}
