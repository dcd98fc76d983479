//! The current thread of a terminal, which another terminal does not change.

use crate::support::Sandbox;

/// Runs a command in a named terminal; returns what is on its screen.
fn at(sandbox: &Sandbox, terminal: &str, arguments: &[&str]) -> String {
    let (lines, code) = sandbox.on_terminal(160, arguments, &[("RETAKE_TERMINAL", terminal)]);
    assert_eq!(code, 0, "{arguments:?}: {lines:#?}");
    lines.join("\n")
}

#[test]
fn each_terminal_has_its_own_current_thread() {
    let sandbox = Sandbox::new();
    for title in ["One", "Two", "Three"] {
        sandbox.done(&["thread", "new", title]);
    }
    let current = || sandbox.json(&["thread", "info"])["title"].clone();
    at(&sandbox, "left", &["switch", "One"]);
    assert_eq!(current(), "One", "programs without a terminal use the thread of the project");
    // A new terminal begins with the thread of the project, and stays in it.
    let text = at(&sandbox, "right", &["run", "say first"]);
    assert!(text.contains("One/main") && !text.contains("Another terminal"), "{text}");
    at(&sandbox, "left", &["switch", "Two"]);
    assert_eq!(current(), "Two");
    let text = at(&sandbox, "right", &["run", "say second"]);
    assert!(text.contains("One/main"), "{text}");
    assert!(text.contains("Another terminal switched the project to Two; this one stays in One."), "{text}");
    let text = at(&sandbox, "right", &["run", "say third"]);
    assert!(text.contains("One/main") && !text.contains("Another terminal"), "reported once: {text}");
    assert!(at(&sandbox, "left", &["run", "say hi"]).contains("Two/main"));
    assert!(at(&sandbox, "third", &["thread", "info"]).contains("Two"));
    // A thread that is gone is nobody's current one.
    sandbox.done(&["thread", "delete", "One"]);
    assert!(at(&sandbox, "right", &["run", "say fourth"]).contains("Two/main"));
    // Another thread by name changes nothing.
    assert!(at(&sandbox, "right", &["run", "-t", "Three", "say hi"]).contains("Three/main"));
    assert!(at(&sandbox, "right", &["run", "say fifth"]).contains("Two/main"));
    at(&sandbox, "right", &["new", "Four"]);
    assert!(at(&sandbox, "right", &["run", "say hi"]).contains("Four/main"));
    assert!(at(&sandbox, "left", &["run", "say hi"]).contains("Two/main"));
}
