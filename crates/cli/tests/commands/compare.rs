//! `retake compare`: answers in full and aligned, side by side where there is room.

use serde_json::json;

use crate::support::Sandbox;

/// Longer than the 60 characters of a preview.
const LONG: &str =
    "The cache is keyed by the date and the name, because two users can have the same name; see cache.rs.";

/// Three takes that share a turn and continue with the same prompt, or another one.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["run", "say hello"]);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.done(&["take", "branch", "--name", "third"]);
    for (take, answer) in [("main", "one"), ("second", LONG), ("third", "one")] {
        sandbox.done(&["take", "switch", take]);
        sandbox.done(&["run", "--approve", "all", &format!("create answer.txt with {take}")]);
        // The same prompt in all takes.
        sandbox.done(&["entry", "edit", "3", "read answer.txt"]);
        sandbox.done(&["entry", "edit", "last", answer]);
    }
    sandbox.done(&["run", "--approve", "all", "create extra.txt with more"]);
    sandbox
}

#[test]
fn turns_are_aligned_by_their_prompts() {
    let sandbox = project();
    let compared = sandbox.json(&["compare", "main", "second", "third"]);
    let names: Vec<_> =
        compared["takes"].as_array().expect("a list").iter().map(|take| &take["name"]).collect();
    assert_eq!(names, ["main", "second", "third"]);
    assert!(compared["shared"].as_u64() >= Some(2), "{compared}");
    let turns = compared["turns"].as_array().expect("a list");
    assert_eq!(turns.len(), 2, "{compared}");
    assert_eq!((&turns[0]["same_prompt"], &turns[1]["entries"][0]), (&json!(true), &json!(null)));
    let first = compared["shared"].as_u64().map(|shared| shared + 1);
    assert_eq!(turns[0]["entries"][1]["first"].as_u64(), first);
    assert_eq!(compared["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(compared["files"][1]["files"][1]["path"], "extra.txt", "{compared}");
    // A single name is compared with the active take.
    let names = sandbox.json(&["compare", "main"]);
    assert_eq!((&names["takes"][0]["name"], &names["takes"][1]["name"]), (&json!("main"), &json!("third")));
    assert_eq!(sandbox.refused(&["compare", "main", "main"]).0, 2);
    assert_eq!(sandbox.refused(&["compare", "main", "nowhere"]).0, 3);
}

#[test]
fn answers_stand_side_by_side_in_a_wide_terminal_and_in_full_in_each() {
    let sandbox = project();
    let text = sandbox.done(&["compare", "main", "second"]);
    assert!(text.replace("\n   ", " ").contains(LONG), "{text}");
    assert_eq!(text.matches("read answer.txt").count(), 1, "the prompt once: {text}");
    assert!(text.contains("Files, from main to second") && text.contains("answer.txt"), "{text}");
    let wide = sandbox.screen(200, &["compare", "main", "second"]);
    assert!(wide.iter().any(|line| line.starts_with("main  ") && line.ends_with("│ second")), "{wide:#?}");
    let narrow = sandbox.screen(80, &["compare", "main", "second"]);
    assert!(narrow.iter().all(|line| !line.contains('│')), "{narrow:#?}");
    assert!(narrow.iter().any(|line| line == "second"), "{narrow:#?}");
    // Three takes need more room than two.
    let three = |columns| sandbox.screen(columns, &["compare", "main", "second", "third"]);
    assert!(three(120).iter().all(|line| !line.contains('│')));
    let wide = three(160);
    assert!(wide.iter().any(|line| line.matches('│').count() == 2), "{wide:#?}");
    let patch = sandbox.done(&["compare", "main", "second", "--patch"]);
    assert!(patch.contains("-main") && patch.contains("+second"), "{patch}");
}
