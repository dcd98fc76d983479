//! `retake context show`, and parts of entries that are not in the context.

use serde_json::Value;

use crate::support::Sandbox;

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("long.txt", &"a long line of a file\n".repeat(500));
    sandbox.done(&["run", "--approve", "all", "read long.txt"]);
    sandbox
}

fn size(sandbox: &Sandbox) -> Value {
    sandbox.json(&["context", "show"])
}

fn tokens(sandbox: &Sandbox) -> u64 {
    size(sandbox)["tokens"].as_u64().expect("a number")
}

#[test]
fn the_next_request_is_listed_by_size() {
    let sandbox = project();
    let found = size(&sandbox);
    let entries = found["entries"].as_array().expect("a list");
    let all = |key: &str| entries.iter().map(|entry| entry[key].as_u64().expect("a number")).sum::<u64>();
    let parts = all("tokens")
        + found["system"].as_u64().expect("a number")
        + found["tools"].as_u64().expect("a number");
    let total = found["tokens"].as_u64().expect("a number");
    assert!(parts.abs_diff(total) <= total / 100 + 5, "{parts} of {total}");
    assert!(all("output") > total / 2, "{found}");
    assert!(found["window"].as_u64() > Some(total) && found["reserved"].as_u64() > Some(0), "{found}");
    sandbox.done(&["context", "add", "long.txt"]);
    assert_eq!(size(&sandbox)["files"][0]["path"], "long.txt");
    let text = sandbox.done(&["context", "show", "-n", "1"]);
    assert!(text.contains("Tool") && text.contains("smaller entries"), "{text}");
}

#[test]
fn an_output_leaves_the_context_and_stays_in_its_entry() {
    let sandbox = project();
    let (entry, before) = ("3", tokens(&sandbox));
    let shown = sandbox.json(&["entry", "show", entry]);
    let text = sandbox.done(&["context", "remove", entry, "--output"]);
    assert!(text.starts_with("Removed from the context: outputs, of 1 entry."), "{text}");
    assert!(tokens(&sandbox) < before / 2);
    let blocks = |value: &Value| value["entry"]["blocks"].clone();
    assert_eq!(blocks(&sandbox.json(&["entry", "show", entry])), blocks(&shown));
    assert!(sandbox.done(&["context", "show"]).contains("without its output"), "{text}");
    // The built-in assistant and every model get a note instead.
    sandbox.done(&["run", "say hi"]);
    sandbox.done(&["undo"]);
    sandbox.done(&["undo"]);
    assert_eq!(tokens(&sandbox), before);
    sandbox.done(&["redo"]);
    sandbox.done(&["context", "add", entry, "--output"]);
    assert_eq!(tokens(&sandbox), before);
    assert_eq!(sandbox.json(&["entry", "show", entry])["entry"], shown["entry"]);
    assert_eq!(sandbox.refused(&["context", "remove", "1", "--output"]).0, 5);
    assert_eq!(sandbox.refused(&["context", "remove", "99", "--images"]).0, 3);
    assert_eq!(sandbox.run(&["context", "remove", "3", "--output", "--list", "files"]).code, 2);
}
