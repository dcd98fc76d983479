//! Takes, the tree, history, drafts and settings, with the real program.

use crate::support::Sandbox;
use serde_json::{Value, json};

/// A thread with two questions and two answers.
fn conversation() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    for (role, text) in [
        ("User", "Why does the login fail?"),
        ("AI", "The token expired."),
        ("User", "Fix it, and add a test."),
        ("AI", "Done: fourteen files changed."),
    ] {
        sandbox.done(&["entry", "add", "--role", role, text]);
    }
    sandbox
}

fn texts(sandbox: &Sandbox) -> Vec<String> {
    let shown = sandbox.json(&["thread", "show", "--all"]);
    let entries = shown["entries"].as_array().expect("entries").iter();
    entries.map(|view| view["entry"]["blocks"][0]["text"].as_str().expect("text").to_owned()).collect()
}

fn draft(sandbox: &Sandbox) -> String {
    sandbox.json(&["draft"])["draft"].as_str().expect("a draft is text").to_owned()
}

fn take_names(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.json(&["take", "list"]);
    list["takes"].as_array().expect("takes").iter().map(|take| text(&take["name"])).collect()
}

fn active(sandbox: &Sandbox) -> String {
    text(&sandbox.json(&["thread", "info"])["active"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}

fn state(sandbox: &Sandbox) -> Value {
    sandbox.json(&["history", "--limit", "1"])["operations"][0]["state"].clone()
}

#[test]
fn undo_and_redo_are_the_identity_and_describe_the_operations() {
    let sandbox = conversation();
    sandbox.done(&["entry", "edit", "2", "The clock was wrong."]);
    let edited = state(&sandbox);

    let undone = sandbox.json(&["undo"]);
    assert_eq!(undone["count"], 1);
    assert_eq!(undone["changes"][0]["kind"]["type"], "entry_edited");
    assert_eq!(undone["changes"][0]["preview"], "The clock was wrong.");
    assert_eq!((&undone["can_undo"], &undone["can_redo"]), (&json!(true), &json!(true)));
    assert_eq!(texts(&sandbox)[1], "The token expired.");

    let printed = sandbox.done(&["redo"]);
    assert!(printed.starts_with("Redid: edited entry 2  The clock was wrong.\n"), "{printed}");
    assert!(printed.contains("Now on main, 4 entries. Undo possible, nothing to redo."), "{printed}");
    assert_eq!(state(&sandbox), edited);

    let undone = sandbox.json(&["undo", "3"]);
    assert_eq!((&undone["steps"], &undone["count"]), (&json!(3), &json!(3)));
    assert_eq!(undone["before"], json!({"title": "Fix the login", "take": "main", "entries": 4, "takes": 1}));
    assert_eq!(undone["after"]["entries"], 2);
    let redone = sandbox.json(&["redo", "99"]);
    assert_eq!(redone["steps"], 3, "there were no more");
    assert_eq!(redone["changes"][0]["preview"], "Fix it, and add a test.", "oldest first");
    assert_eq!(state(&sandbox), edited);
}

#[test]
fn takes_are_branched_forked_switched_renamed_and_deleted() {
    let sandbox = conversation();
    let branched = sandbox.json(&["take", "branch", "2"]);
    assert_eq!(branched["take"]["name"], "main_take_1");
    assert_eq!((&branched["take"]["entries"], &branched["take"]["shared"]), (&json!(2), &json!(2)));
    sandbox.done(&["entry", "add", "Only the dates, please."]);

    let forked = sandbox.json(&["take", "fork", "3", "-k", "main", "--name", "retry"]);
    assert_eq!(forked["draft"], "Fix it, and add a test.");
    assert_eq!((active(&sandbox), texts(&sandbox).len()), ("retry".to_owned(), 2));
    assert_eq!(draft(&sandbox), "Fix it, and add a test.");

    assert_eq!(sandbox.done(&["take", "switch", "main", "-q"]), "");
    assert_eq!(texts(&sandbox).len(), 4, "neither touched the take it came from");
    sandbox.done(&["take", "rename", "--take", "main_take_1", "dates"]);
    assert_eq!(take_names(&sandbox), ["main", "dates", "retry"]);

    let id = text(&sandbox.json(&["take", "list"])["takes"][1]["id"]);
    let deleted = sandbox.json(&["take", "delete", &id]);
    assert_eq!(deleted["take"]["name"], "main", "the active one stays");
    assert_eq!(take_names(&sandbox), ["main", "retry"]);
    for (undone, names) in [
        ("take_deleted", vec!["main", "dates", "retry"]),
        ("take_renamed", vec!["main", "main_take_1", "retry"]),
        ("take_switched", vec!["main", "main_take_1", "retry"]),
        ("take_forked", vec!["main", "main_take_1"]),
    ] {
        assert_eq!(sandbox.json(&["undo"])["changes"][0]["kind"]["type"], undone);
        assert_eq!(take_names(&sandbox), names);
    }
    assert_eq!(active(&sandbox), "main_take_1");
}

#[test]
fn a_take_without_entries_can_be_branched() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new"]);
    assert_eq!(sandbox.json(&["take", "branch"])["take"]["entries"], 0);
    let printed = sandbox.done(&["take", "switch", "main"]);
    assert!(printed.starts_with("Switched to main, 0 entries."), "{printed}");
}

#[test]
fn a_promoted_take_is_a_child_thread_until_the_undo() {
    let sandbox = conversation();
    sandbox.done(&["take", "branch", "2"]);
    sandbox.done(&["entry", "add", "Another way"]);
    let promoted = sandbox.json(&["take", "promote", "--title", "The other way"]);
    let (from, into) = (&promoted["source"]["thread"], &promoted["promoted"]["thread"]);
    assert_eq!((&promoted["title"], &promoted["switched"]), (&json!("The other way"), &json!(false)));

    let tree = sandbox.json(&["tree"]);
    assert_eq!(tree["current"], *from, "one stays where one was");
    let below = |tree: &Value| -> Vec<(String, Value)> {
        let threads = tree["threads"].as_array().expect("threads").iter();
        threads.map(|thread| (text(&thread["title"]), thread["below"].clone())).collect()
    };
    assert!(below(&tree).contains(&("The other way".to_owned(), from.clone())));

    let undone = sandbox.json(&["undo"]);
    assert_eq!(undone["also"], json!([into]));
    assert_eq!(take_names(&sandbox), ["main", "main_take_1"]);
    assert_eq!(below(&sandbox.json(&["tree"])).len(), 1);
    let printed = sandbox.done(&["redo"]);
    assert!(printed.contains("Thread The other way") && printed.contains("was restored too"), "{printed}");
    assert_eq!(take_names(&sandbox), ["main"]);

    // The parent is deleted: its child becomes a root.
    sandbox.done(&["thread", "delete"]);
    assert_eq!(below(&sandbox.json(&["tree"])), [("The other way".to_owned(), Value::Null)]);
    assert_eq!(below(&sandbox.json(&["tree", "--deleted"])).len(), 2);

    sandbox.done(&["thread", "switch", "The other way"]);
    sandbox.done(&["take", "branch"]);
    let switched = sandbox.json(&["take", "promote", "main_take_1", "--switch"]);
    assert_eq!(sandbox.json(&["tree"])["current"], switched["promoted"]["thread"]);
}

#[test]
fn undoing_a_promotion_keeps_a_changed_thread() {
    let sandbox = conversation();
    sandbox.done(&["take", "branch"]);
    let promoted = sandbox.json(&["take", "promote", "--title", "B"]);
    let followed = json!([promoted["promoted"]["thread"]]);
    for _ in 0..2 {
        assert_eq!(sandbox.json(&["undo"])["also"], followed);
        assert_eq!(sandbox.json(&["redo"])["also"], followed);
    }
    sandbox.done(&["entry", "add", "-t", "B", "work"]);
    sandbox.done(&["thread", "delete", "B"]);
    sandbox.done(&["thread", "restore", "B"]);
    assert_eq!(sandbox.json(&["undo"])["also"], json!([]), "nobody's work goes with another's undo");
    assert_eq!(sandbox.json(&["tree"])["threads"].as_array().map_or(0, Vec::len), 2);
}

#[test]
fn every_version_can_be_reached_by_number_or_name() {
    let sandbox = conversation();
    let saved = sandbox.done(&["save", "before the rewrite"]);
    assert!(saved.contains("on main, 4 entries"), "{saved}");
    sandbox.done(&["clear"]);
    sandbox.done(&["entry", "add", "A new beginning"]);

    let jumped = sandbox.json(&["jump", "before the rewrite"]);
    assert_eq!((&jumped["position"], &jumped["after"]["entries"]), (&json!(5), &json!(4)));
    // A skipped version can still be reached by a jump.
    sandbox.done(&["jump", "8"]);
    assert_eq!(texts(&sandbox), ["A new beginning"]);
    let here = sandbox.done(&["jump", "8"]);
    assert!(here.starts_with("Already at version 8."), "{here}");
    sandbox.done(&["jump", "2"]);
    let redone = sandbox.json(&["redo", "9"]);
    assert_eq!(redone["after"]["entries"], 1, "a jump back keeps what lies ahead");
}

#[test]
fn clearing_is_one_step_of_undo() {
    let sandbox = conversation();
    sandbox.done(&["take", "branch"]);
    sandbox.done(&["draft", "set", "half a thought"]);
    sandbox.done(&["settings", "set", "temperature", "0.7", "model", "opus"]);
    sandbox.done(&["context", "add", "src/login.rs"]);
    let before = state(&sandbox);

    let truncated = sandbox.json(&["truncate", "1"]);
    assert_eq!(truncated["kind"]["removed"], 2);
    assert_eq!(texts(&sandbox), ["Fix it, and add a test.", "Done: fourteen files changed."]);
    sandbox.done(&["undo"]);
    sandbox.done(&["clear"]);
    assert_eq!(texts(&sandbox).len(), 0);
    assert_eq!(draft(&sandbox), "half a thought", "clearing is about entries");
    sandbox.done(&["undo"]);

    assert_eq!(sandbox.refused(&["reset"]).0, 5, "there is nobody to ask");
    assert_eq!(state(&sandbox), before);
    let reset = sandbox.json(&["reset", "--yes"]);
    let cleared =
        json!({"entries": 8, "takes": 2, "drafts": 1, "files": 1, "settings": ["temperature", "model"]});
    assert_eq!(reset["cleared"], cleared);
    assert_eq!((texts(&sandbox).len(), draft(&sandbox)), (0, String::new()));
    assert_eq!(take_names(&sandbox), ["main", "main_take_1"]);
    assert_eq!(sandbox.json(&["settings", "get", "temperature"])["value"], Value::Null);
    sandbox.done(&["undo"]);
    assert_eq!(state(&sandbox), before, "one undo brings all of it back");
    sandbox.done(&["redo"]);
    let again = sandbox.done(&["reset", "--yes"]);
    assert_eq!(again, "Nothing to reset.\n");
}

#[test]
fn typing_is_one_step_per_pause() {
    let sandbox = conversation();
    std::fs::write(sandbox.config(), "[history]\ntyping_pause_ms = 60000\n").expect("the folder is ours");
    for text in ["W", "Wh", "Why", "Why not?"] {
        sandbox.done(&["draft", "set", text]);
    }
    let shown = sandbox.done(&["history"]);
    assert!(shown.contains("● 6–9  just now  you  edited the draft  Why not?"), "{shown}");
    assert_eq!(sandbox.done(&["history", "--all"]).matches("edited the draft").count(), 4);
    assert_eq!(sandbox.json(&["undo", "--step"])["count"], 1);
    assert_eq!(draft(&sandbox), "Why");
    sandbox.done(&["redo"]);
    assert_eq!(sandbox.json(&["undo"])["count"], 4);
    assert_eq!(draft(&sandbox), "");

    std::fs::write(sandbox.config(), "[history]\ntyping_pause_ms = 0\n").expect("the folder is ours");
    sandbox.done(&["draft", "set", "one"]);
    sandbox.done(&["draft", "set", "two"]);
    sandbox.done(&["undo"]);
    assert_eq!(draft(&sandbox), "one");
    sandbox.done(&["draft", "clear"]);
    let operation = sandbox.json(&["history"])["operations"][0].clone();
    assert_eq!(operation["description"], "cleared the draft");
}

#[test]
fn drafts_come_from_arguments_files_and_pipes() {
    let sandbox = conversation();
    sandbox.done(&["draft", "set", "argument\n"]);
    assert_eq!(draft(&sandbox), "argument\n", "an argument is taken as it is");
    std::fs::write(sandbox.project().join("message.md"), "from a file\n").expect("the folder is ours");
    sandbox.done(&["draft", "set", "--file", "message.md"]);
    assert_eq!(draft(&sandbox), "from a file");
    sandbox.run_with(&["draft", "set"], "from a pipe\n");
    assert_eq!(sandbox.done(&["draft", "show", "--text"]), "from a pipe");
    assert_eq!(sandbox.done(&["draft", "set", "from a pipe"]), "Nothing to change.\n");
}

#[test]
fn settings_are_part_of_history() {
    let sandbox = conversation();
    sandbox.done(&["settings", "set", "temperature", "0.7", "provider", "anthropic"]);
    let prompt = sandbox.run_with(&["settings", "set", "project_system_prompt"], "Be brief.\nBe kind.\n");
    assert_eq!(prompt.code, 0, "{}", prompt.stderr);
    let all = sandbox.json(&["settings"]);
    assert_eq!(all["settings"]["project_system_prompt"], "Be brief.\nBe kind.");
    assert_eq!(all["changed"], json!(["project_system_prompt", "temperature", "provider"]));
    assert_eq!(sandbox.done(&["settings", "get", "project_system_prompt"]), "Be brief.\nBe kind.\n");
    sandbox.done(&["settings", "unset", "provider", "project_system_prompt"]);
    assert_eq!(sandbox.json(&["settings", "get", "provider"])["value"], Value::Null);
    assert_eq!(sandbox.json(&["undo", "3"])["count"], 3);
    assert_eq!(sandbox.json(&["settings", "list"])["changed"], json!([]));

    let (code, error) = sandbox.refused(&["settings", "set", "temprature", "1"]);
    assert!(code == 3 && text(&error["message"]).contains("temperature"), "{code} {error}");
    assert_eq!(sandbox.refused(&["settings", "get", "nonsense"]).0, 3);
    assert_eq!(sandbox.refused(&["settings", "set", "temperature", "-1"]).0, 5);
    assert_eq!(sandbox.refused(&["settings", "set", "temperature", "1", "top_p"]).0, 2);
}

#[test]
fn roles_and_context_files_can_be_added_and_removed() {
    let sandbox = conversation();
    sandbox.done(&["role", "add", "Reviewer", "User"]);
    let roles = |sandbox: &Sandbox| sandbox.json(&["role"])["roles"].clone();
    assert_eq!(roles(&sandbox), json!(["User", "AI", "Vendor API", "System", "Reviewer"]));
    sandbox.done(&["role", "add", "--first", "Reviewer"]);
    sandbox.done(&["role", "remove", "Vendor API", "nobody"]);
    assert_eq!(roles(&sandbox), json!(["Reviewer", "User", "AI", "System"]));
    let all = ["Reviewer", "User", "AI", "System"];
    sandbox.done(&[&["role", "remove"][..], &all].concat());
    assert_eq!(sandbox.json(&["role", "list"])["roles"], json!([]), "none is fine");
    sandbox.done(&["undo", "4"]);
    assert_eq!(roles(&sandbox), json!(["User", "AI", "Vendor API", "System"]));

    let source = sandbox.project().join("src");
    std::fs::create_dir(&source).expect("the folder is ours");
    let added = sandbox.run_in(&source, &["context", "add", "login.rs", "../README.md", "login.rs"], "");
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stderr.contains("src/login.rs does not exist yet."), "{}", added.stderr);
    let files = |list: &str| -> Vec<String> {
        let found = sandbox.json(&["context", "list", "--list", list]);
        found["files"].as_array().expect("files").iter().map(|file| text(&file["path"])).collect()
    };
    assert_eq!(files("context"), ["src/login.rs", "README.md"]);
    assert_eq!(files("screenshots").len(), 0);
    sandbox.done(&["context", "remove", "src/login.rs"]);
    sandbox.done(&["context", "add", "--list", "screenshots", "error.png"]);
    assert_eq!(
        (files("context"), files("screenshots")),
        (vec!["README.md".into()], vec!["error.png".into()])
    );
    sandbox.done(&["undo", "3"]);
    assert_eq!(sandbox.done(&["context"]), "");
}

#[test]
fn refused_commands_have_exit_codes_and_change_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.refused(&["undo"]).0, 3, "there is no thread yet");
    let sandbox = conversation();
    let before = sandbox.json(&["thread", "info"])["version"].clone();
    for (arguments, wanted) in [
        (&["redo"][..], 5),
        (&["jump", "99"], 3),
        (&["jump", "0"], 3),
        (&["jump", "never saved"], 3),
        (&["undo", "-t", "nothing of that name"], 3),
        (&["take", "switch", "nowhere"], 3),
        (&["take", "branch", "9"], 3),
        (&["take", "fork", "2"], 5),
        (&["take", "delete", "main"], 5),
        (&["take", "promote"], 5),
        (&["take", "branch", "--name", "main"], 5),
        (&["take", "branch", "--name", "a\u{1b}[2Jb"], 5),
        (&["take", "rename", "a/b"], 5),
        (&["thread", "rename", "\u{202e}evil"], 5),
        (&["save", "\u{7}"], 5),
        (&["role", "add", "a\nb"], 5),
    ] {
        assert_eq!(sandbox.refused(arguments).0, wanted, "{arguments:?}");
    }
    for arguments in [
        &["undo"][..],
        &["redo"],
        &["jump", "1"],
        &["save", "name"],
        &["clear"],
        &["truncate", "1"],
        &["reset", "--yes"],
        &["take", "branch"],
        &["take", "fork", "1"],
        &["take", "rename", "other"],
        &["take", "switch", "main"],
        &["take", "promote"],
        &["draft", "set", "x"],
        &["settings", "set", "temperature", "1"],
        &["settings", "unset", "temperature"],
        &["role", "add", "x"],
        &["context", "add", "x"],
    ] {
        let (code, error) = sandbox.refused(&[arguments, &["--expect", "2"]].concat());
        assert_eq!((code, &error["code"]), (4, &json!("version_conflict")), "{arguments:?}");
        assert_eq!((&error["expected"], &error["current"]), (&json!(2), &before), "{arguments:?}");
    }
    assert_eq!(sandbox.json(&["thread", "info"])["version"], before);
    assert_eq!(sandbox.json(&["undo", "--expect", "5"])["version"], 6);
    sandbox.done(&["undo", "99"]);
    assert_eq!(sandbox.refused(&["undo"]).0, 5);
    assert_eq!(sandbox.run(&["undo", "0"]).code, 2);
}

#[test]
fn history_is_listed_in_pages() {
    let sandbox = conversation();
    let first = sandbox.json(&["history", "--limit", "2"]);
    let second = sandbox.json(&["history", "--limit", "99", "--before", &first["next"].to_string()]);
    let versions = |page: &Value| -> Vec<u64> {
        let operations = page["operations"].as_array().expect("operations").iter();
        operations.filter_map(|operation| operation["version"].as_u64()).collect()
    };
    assert_eq!((versions(&first), versions(&second)), (vec![5, 4], vec![3, 2, 1]));
    assert_eq!(second["next"], Value::Null);
    let shown = sandbox.done(&["history", "-n", "2"]);
    assert!(shown.ends_with("… older: `retake history --before 4`\n"), "{shown}");
}

#[test]
fn the_tree_can_be_filtered_and_shown_by_message() {
    let sandbox = conversation();
    sandbox.done(&["take", "branch", "2"]);
    sandbox.done(&["entry", "add", "Only the dates, please."]);
    sandbox.done(&["take", "fork", "3"]);
    sandbox.done(&["thread", "new", "Notes"]);
    let titles = |arguments: &[&str]| -> Vec<String> {
        let tree = sandbox.json(arguments);
        tree["threads"].as_array().expect("threads").iter().map(|thread| text(&thread["title"])).collect()
    };
    assert_eq!(titles(&["tree", "-t", "Fix the login"]), ["Fix the login"]);
    assert_eq!(titles(&["tree", "--all"]).len(), 2);

    let shape = &sandbox.json(&["tree", "--entries", "-t", "Fix the login"])["shape"];
    let below = |list: &str, index: usize| shape[list][index]["below"].clone();
    let numbers: Vec<u64> =
        shape["messages"].as_array().expect("messages").iter().filter_map(|m| m["number"].as_u64()).collect();
    assert_eq!(numbers, [1, 3, 3]);
    assert_eq!((below("messages", 1), below("messages", 2)), (json!(0), json!(0)));
    // The fork shares with its parent only what the parent shares with the first take.
    assert_eq!((below("takes", 0), below("takes", 1), below("takes", 2)), (json!(1), json!(2), json!(0)));
}

#[test]
fn deleting_the_current_thread_selects_another_and_undo_brings_it_back() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Only"]);
    let (code, error) = sandbox.refused(&["thread", "delete"]);
    assert_eq!((code, &error["code"]), (5, &"conflict".into()), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("last thread")), "{error}");
    for title in ["Older", "Newer", "Deleted"] {
        sandbox.done(&["thread", "new", title]);
        sandbox.done(&["entry", "add", title]);
    }
    let current = || sandbox.json(&["thread", "info"])["title"].as_str().expect("a title").to_owned();
    sandbox.done(&["thread", "delete", "Older"]);
    assert_eq!(current(), "Deleted", "one that is not current changes nothing about it");
    sandbox.done(&["thread", "restore", "Older"]);
    let printed = sandbox.done(&["thread", "delete"]);
    assert!(printed.contains("The current thread is now Older"), "the most recently changed one: {printed}");
    assert_eq!(current(), "Older");
    sandbox.done(&["undo"]);
    assert_eq!(current(), "Deleted", "it is back, and current again");
    // An undo refers to the latest operation.
    sandbox.done(&["thread", "delete"]);
    sandbox.done(&["entry", "add", "more"]);
    sandbox.done(&["undo"]);
    assert_eq!(current(), "Older");
    assert_eq!(sandbox.json(&["thread", "show"])["entries"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_entry_can_be_inserted_into_an_empty_take() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Empty"]);
    sandbox.refused(&["entry", "insert", "2", "too far"]);
    sandbox.done(&["entry", "insert", "1", "second"]);
    sandbox.done(&["entry", "insert", "1", "first"]);
    let shown = sandbox.done(&["thread", "show"]);
    assert!(shown.find("first") < shown.find("second"), "{shown}");
}

#[test]
fn a_too_short_id_prefix_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Named"]);
    let id = sandbox.json(&["thread", "info"])["id"].as_str().expect("an id").to_owned();
    let (code, error) = sandbox.refused(&["thread", "show", &id[..3]]);
    let message = error["message"].as_str().expect("a text");
    assert!(code == 3 && message.contains("at least 4 characters"), "{error}");
    sandbox.done(&["thread", "show", &id[..4]]);
    let (_, error) = sandbox.refused(&["thread", "show", "zzzz"]);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("no id begins with it")), "{error}");
    let (_, error) = sandbox.refused(&["take", "switch", "xy"]);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("at least 4 characters")), "{error}");
}

#[test]
fn saved_versions_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Saved"]);
    assert_eq!(sandbox.done(&["save", "--list"]), "");
    let one = sandbox.json(&["save", "one"])["version"].clone();
    sandbox.done(&["entry", "add", "more"]);
    let two = sandbox.json(&["save", "two"])["version"].clone();
    let listed = sandbox.json(&["save", "--list"])["saved"].clone();
    assert_eq!((&listed[0]["name"], &listed[0]["version"]), (&json!("two"), &two), "{listed}");
    assert_eq!((&listed[1]["name"], &listed[1]["version"]), (&json!("one"), &one), "{listed}");
    assert!(sandbox.done(&["save", "--list"]).contains("two"));
    assert_ne!(sandbox.run(&["save"]).code, 0, "a name is needed");
}

#[test]
fn a_change_in_the_middle_of_an_undone_turn_is_a_step_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["run", "--approve", "all", "create a with 1"]);
    let end = sandbox.json(&["thread", "info"])["version"].to_string();
    sandbox.done(&["undo", "--step"]);
    sandbox.done(&["take", "branch", "2"]);
    sandbox.done(&["jump", &end]);
    let shown = sandbox.json(&["thread", "show"])["entries"].clone();
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("a"), None);
    sandbox.done(&["redo"]);
    assert!(sandbox.read("a").is_some(), "redo restores what the undo removed");
    assert_eq!(sandbox.json(&["thread", "show"])["entries"], shown);

    // One undo takes back the edit, and not the rest of the turn with it.
    sandbox.done(&["undo", "--step"]);
    let middle = sandbox.json(&["thread", "show"])["entries"].clone();
    sandbox.done(&["entry", "edit", "1", "create b with 1"]);
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.json(&["thread", "show"])["entries"], middle);
}
