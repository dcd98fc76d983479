//! Turns from the command line, with the offline assistant.

use std::time::{Duration, Instant};

use crate::support::Sandbox;
use serde_json::Value;

fn events(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let text = sandbox.done(&[arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("one event a line")).collect()
}

#[test]
fn the_first_run_and_undo_need_no_setup() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&[
        "run",
        "--approve",
        "all",
        "create hello.txt with hi\nrun echo more >> hello.txt\nsay Ready.",
    ]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("Ready."), "{}", output.stdout);
    assert!(!output.stdout.contains("hello.txt\n  ✓"), "what is about the answer is not in it");
    assert_eq!(sandbox.read("hello.txt").as_deref(), Some("hi\nmore\n"));
    let thread = sandbox.json(&["thread", "info"]);
    assert_eq!(
        thread["title"].as_str().map(|title| title.starts_with("create hello.txt")),
        Some(true),
        "{thread}"
    );
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("hello.txt"), None);
    sandbox.done(&["redo"]);
    assert_eq!(sandbox.read("hello.txt").as_deref(), Some("hi\nmore\n"));
    let blamed = sandbox.json(&["blame", "hello.txt"]);
    assert!(blamed.to_string().contains("tool_call"), "{blamed}");
    sandbox.done(&["verify"]);
}

#[test]
fn each_event_is_one_line_and_the_last_one_has_the_outcome() {
    let sandbox = Sandbox::new();
    let events = events(&sandbox, &["run", "--approve", "all", "think hm\nlist\nsay done"]);
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names.first(), Some(&"started"));
    for name in ["calling", "thinking", "text", "tool_started", "tool_ended", "answered"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let last = events.last().expect("events");
    assert_eq!((last["event"].as_str(), last["how"].as_str()), (Some("ended"), Some("completed")));
}

#[test]
fn piped_input_becomes_part_of_the_prompt() {
    let sandbox = Sandbox::new();
    let check = |arguments: &[&str], input: &str, expected: &str| {
        let output = sandbox.run_with(arguments, input);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let shown = sandbox.json(&["thread", "show", "--all"]);
        assert!(shown.to_string().contains(expected), "{expected} in {shown}");
    };
    check(&["run", "--new"], "say from the pipe", "say from the pipe");
    check(&["run", "--new", "-"], "say from a dash", "say from a dash");
    check(&["run", "--new", "say", "both"], "and this", "say both\\n\\nand this");
    let output = sandbox.run(&["run"]);
    assert_eq!(output.code, 2, "nothing to ask: {}", output.stderr);
}

#[test]
fn without_a_terminal_calls_that_need_approval_are_denied() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["run", "create a.txt with x"]);
    assert_eq!(sandbox.read("a.txt"), None);
    assert!(output.stderr.contains("--approve"), "{}", output.stderr);
    std::fs::write(sandbox.config(), "[agent]\napproval = \"edits\"\n").expect("it is ours");
    sandbox.done(&["run", "create a.txt with x\nrun echo y > b.txt"]);
    assert!(sandbox.read("a.txt").is_some() && sandbox.read("b.txt").is_none());
}

#[test]
fn the_approval_prompt_is_shown_and_answered() {
    let check = |typed: &str, exists: bool| {
        let sandbox = Sandbox::new();
        let lines = sandbox.answered_when(100, &["run", "create a.txt with x"], &[("instead: ", typed)]);
        let screen = lines.join("\n");
        assert!(screen.contains("Allow?"), "{screen}");
        assert_eq!(sandbox.read("a.txt").is_some(), exists, "{typed:?}: {screen}");
    };
    check("y\n", true);
    check("a\n", true);
    check("n\n", false);
    check("use another name\n", false);
}

#[test]
fn input_typed_before_the_prompt_is_not_an_answer() {
    let sandbox = Sandbox::new();
    let arguments = ["run", "wait 1\ncreate a.txt with x"];
    // First too early, while the assistant still talks; then when it asks.
    let lines = sandbox.answered_when(100, &arguments, &[(".", "y\n"), ("instead: ", "n\n")]);
    assert_eq!(sandbox.read("a.txt"), None, "{lines:?}");
}

#[test]
fn a_turn_is_stopped_from_another_terminal() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "T"]);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| sandbox.run(&["run", "wait 60"]));
        loop {
            let output = sandbox.run(&["stop"]);
            if output.code == 0 {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(50), "{}", output.stderr);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(turn.join().expect("no panic").code, 130);
    });
    assert!(started.elapsed() < Duration::from_secs(55));
    // The take is available again.
    sandbox.done(&["run", "say hello"]);
}

#[test]
fn a_turn_that_fails_is_resumed() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.config(), "[agent]\nattempts = 1\n").expect("it is ours");
    let output = sandbox.run(&["run", "fail\nsay at last"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("retake resume"), "{}", output.stderr);
    std::fs::write(sandbox.config(), "[agent]\nattempts = 3\n").expect("it is ours");
    let output = sandbox.run(&["resume"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("at last"), "{}", output.stdout);
    assert_eq!(sandbox.run(&["resume"]).code, 3, "nothing is left to go on with");
}

#[test]
fn a_retry_can_be_compared_with_the_original() {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "--approve", "all", "create a.txt with one"]);
    sandbox.done(&["retry", "last", "create a.txt with two", "--name", "second", "--approve", "all"]);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("two\n"));
    let compared = sandbox.json(&["compare", "main", "second"]);
    assert_eq!(compared["shared"], 0);
    assert_eq!(compared["takes"][1]["calls"]["made"], 1);
    assert_eq!(compared["files"][0]["files"][0]["path"], "a.txt", "{compared}");
    assert_eq!(compared["turns"][0]["same_prompt"], false, "{compared}");
    sandbox.done(&["take", "switch", "main"]);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    let (code, error) = sandbox.refused(&["retry", "last", "  "]);
    assert_eq!((code, error["code"].as_str()), (5, Some("refused")), "{error}");
    assert_eq!(sandbox.json(&["take", "list"])["takes"].as_array().map(Vec::len), Some(2), "no orphan");
}

#[test]
fn compressed_entries_are_restored_by_undo() {
    let sandbox = Sandbox::new();
    for number in 0..6 {
        sandbox.done(&["run", &format!("say number {number}")]);
    }
    let compressed = sandbox.json(&["compress", "--keep", "2"]);
    assert_eq!(compressed["removed"], 10, "{compressed}");
    let entries = |sandbox: &Sandbox| {
        let shown = sandbox.json(&["thread", "show", "--all"]);
        shown["entries"].as_array().map(Vec::len)
    };
    assert_eq!(entries(&sandbox), Some(3));
    sandbox.done(&["undo"]);
    assert_eq!(entries(&sandbox), Some(12));
}

#[test]
fn the_trace_survives_undo_and_reset_and_is_purged_with_its_thread() {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "list"]);
    let kinds = |sandbox: &Sandbox| -> Vec<String> {
        let text = sandbox.done(&["trace", "--all", "--json"]);
        let kind = |line: &str| {
            let record: Value = serde_json::from_str(line).expect("one record a line");
            record["kind"].as_str().expect("a kind").to_owned()
        };
        text.lines().map(kind).collect()
    };
    let expected = ["request", "answer", "tool_call", "tool_result", "request", "answer"];
    assert_eq!(kinds(&sandbox), expected);
    sandbox.done(&["undo"]);
    sandbox.done(&["reset", "--yes"]);
    assert_eq!(kinds(&sandbox), expected);
    assert!(sandbox.done(&["trace", "4"]).contains("tool_result"));
    let usage = sandbox.json(&["usage"]);
    assert_eq!(usage["models"][0]["answers"], 2, "{usage}");
    let id = sandbox.json(&["thread", "info"])["id"].as_str().expect("an id").to_owned();
    sandbox.done(&["thread", "new", "Another"]);
    sandbox.done(&["thread", "delete", &id]);
    sandbox.done(&["purge", &id, "--yes"]);
    assert_eq!(kinds(&sandbox), Vec::<String>::new());
}

#[test]
fn control_sequences_of_a_model_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["run", "say \u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m and \u{202e}reversed"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for text in [&output.stdout, &output.stderr] {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{text:?}");
    }
    assert!(output.stdout.contains("title"), "it is shown, not hidden: {:?}", output.stdout);
}

#[test]
fn providers_are_listed_with_missing_settings() {
    let sandbox = Sandbox::new();
    let models = sandbox.json(&["models"]);
    assert_eq!(models["default"]["provider"], "offline");
    let anthropic = models["providers"]
        .as_array()
        .and_then(|listed| listed.iter().find(|one| one["name"] == "anthropic"))
        .expect("a provider");
    assert_eq!(anthropic["ready"], false);
    assert!(anthropic["missing"].to_string().contains("ANTHROPIC_API_KEY"), "{anthropic}");
    let (code, error) = sandbox.refused(&["run", "--model", "anthropic/x", "hello"]);
    assert_eq!(code, 5);
    assert!(error["message"].to_string().contains("ANTHROPIC_API_KEY"), "{error}");
}

#[test]
fn an_edit_reports_uncached_tokens() {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "say one"]);
    sandbox.done(&["run", "say two"]);
    let first = sandbox.json(&["entry", "edit", "1", "say something else"]);
    let last = sandbox.json(&["entry", "edit", "last", "two, then"]);
    let tokens = |answer: &Value| answer["uncached_tokens"].as_u64().expect("a number");
    assert!(tokens(&first) > tokens(&last), "{first} {last}");
}

#[test]
fn an_unknown_model_is_not_answered_by_the_assistant() {
    let sandbox = Sandbox::new();
    let (code, error) = sandbox.refused(&["run", "--model", "nonsense", "hello"]);
    assert_eq!(code, 5);
    assert!(error["message"].to_string().contains("PROVIDER/MODEL"), "{error}");
    std::fs::write(sandbox.config(), "[agent]\nmodel = \"anthropic/some-model\"\n").expect("it is ours");
    let (_, error) = sandbox.refused(&["run", "hello"]);
    assert!(error["message"].to_string().contains("ANTHROPIC_API_KEY"), "the provider is heard: {error}");
}

#[test]
fn the_model_setting_of_a_turn_is_undone_with_the_turn() {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "hello"]);
    let model = || sandbox.json(&["settings", "get", "model"])["value"].clone();
    let before = model();
    sandbox.done(&["run", "--model", "offline", "say more"]);
    let chosen = model();
    assert_ne!(chosen, before);
    sandbox.done(&["thread", "rename", "Second"]);
    sandbox.done(&["undo"]);
    assert_eq!(model(), chosen, "the rename is undone, and nothing else");
    sandbox.done(&["undo"]);
    assert_eq!(model(), before);
    sandbox.done(&["redo"]);
    assert_eq!(model(), chosen);
}

#[test]
fn slash_commands_in_a_chat_apply_to_its_thread() {
    let sandbox = Sandbox::new();
    for name in ["A", "B"] {
        sandbox.done(&["thread", "new", name]);
        sandbox.done(&["run", "say hello"]);
    }
    let output = sandbox.run_with(&["chat", "--thread", "A"], "say more\n/undo\n/undo\n");
    assert_eq!(output.code, 0, "{}", output.stderr);
    let entries =
        |name: &str| sandbox.json(&["thread", "show", name])["entries"].as_array().map_or(0, Vec::len);
    assert_eq!((entries("A"), entries("B")), (0, 2));
}

#[test]
fn a_damaged_runtime_database_is_found_and_quarantined() {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "say hello"]);
    let runtime_database = sandbox.project().with_file_name("store").join("ledger.db");
    std::fs::write(&runtime_database, [7; 4096]).expect("it is ours");
    assert_eq!(sandbox.run(&["verify"]).code, 6);
    assert!(sandbox.done(&["repair"]).contains("ledger"));
    sandbox.done(&["verify"]);
    sandbox.done(&["run", "say hello again"]);
}

#[test]
fn a_retry_resolves_conflicts_as_requested() {
    let check = |conflicts: &[&str], wanted: &str| {
        let sandbox = Sandbox::new();
        sandbox.done(&["run", "--approve", "all", "run echo one >> a.txt"]);
        sandbox.write("a.txt", "mine\n");
        sandbox.done(&[&["retry", "--approve", "all"], conflicts].concat());
        assert_eq!(sandbox.read("a.txt").as_deref(), Some(wanted), "{conflicts:?}");
    };
    check(&[], "mine\none\n");
    check(&["--conflicts", "keep"], "mine\none\n");
    check(&["--conflicts", "take"], "one\n");
}
