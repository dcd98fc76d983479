//! The script: each kind of change at least once, on a store with some history.

/// One command of the script.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Arguments of `retake`.
    pub arguments: &'static [&'static str],
    /// Whether it may destroy threads.
    pub destroys: bool,
}

const fn step(arguments: &'static [&'static str]) -> Step {
    Step { arguments, destroys: false }
}

const fn destroying(arguments: &'static [&'static str]) -> Step {
    Step { arguments, destroys: true }
}

/// A folder in the project that is a separate project for a while.
pub(super) const INNER: &str = "inner";

/// The script. There is no store before the first command.
pub const SCRIPT: &[Step] = &[
    step(&["thread", "new", "Fix the login"]),
    step(&["entry", "add", "Why does the login fail?"]),
    step(&["entry", "add", "--role", "AI", "<think>hm</think>Because of the cookie."]),
    step(&["entry", "add", "Then mend it, please."]),
    step(&["entry", "insert", "1", "--role", "System", "Answer in one sentence."]),
    step(&["entry", "edit", "3", "Because the session has expired."]),
    step(&["entry", "role", "4", "Vendor API"]),
    step(&["undo"]),
    step(&["entry", "collapse", "--all"]),
    step(&["take", "branch", "3"]),
    step(&["entry", "add", "Another way, then."]),
    step(&["take", "fork", "2"]),
    step(&["take", "rename", "second try"]),
    step(&["take", "switch", "main"]),
    step(&["take", "promote", "main_take_1", "--title", "The other way"]),
    step(&["undo"]),
    step(&["redo"]),
    step(&["take", "delete", "second try"]),
    step(&["thread", "rename", "Fix the login for good"]),
    step(&["thread", "tag", "bug", "login"]),
    step(&["thread", "pin"]),
    step(&["settings", "set", "temperature", "0.7"]),
    step(&["role", "add", "Reviewer"]),
    step(&["settings", "set", "project_system_prompt", "Be brief."]),
    step(&["settings", "set", "global_system_prompt", "Be kind."]),
    step(&["context", "add", "src/main.rs", "README.md"]),
    step(&["context", "preset", "save", "mine"]),
    step(&["context", "add", "Cargo.toml"]),
    step(&["context", "preset", "save", "mine"]),
    step(&["context", "preset", "delete", "mine"]),
    step(&["context", "preset", "restore", "mine"]),
    step(&["context", "preset", "load", "mine"]),
    step(&["-C", INNER, "project", "init"]),
    step(&["-C", INNER, "project", "forget"]),
    step(&["draft", "set", "half a thought"]),
    step(&["save", "before the reset"]),
    step(&["reset", "--yes"]),
    step(&["undo"]),
    step(&["truncate", "1"]),
    step(&["clear"]),
    step(&["jump", "before the reset"]),
    step(&["entry", "delete", "1"]),
    step(&["search", "session"]),
    step(&["thread", "new", "A second one"]),
    step(&["entry", "add", "This will be destroyed."]),
    step(&["redact", "--yes", "last"]),
    step(&["thread", "delete", "A second one"]),
    destroying(&["purge", "--yes", "A second one"]),
    step(&["thread", "switch", "Fix the login for good"]),
    step(&["gc", "--yes", "--grace", "0"]),
    step(&["repair"]),
    step(&["entry", "add", "And it still works."]),
];

/// Two commands on a store of an earlier release: the first migrates it.
pub(super) const MIGRATION: &[Step] =
    &[step(&["thread", "new", "After the update"]), step(&["entry", "add", "The first words."])];
