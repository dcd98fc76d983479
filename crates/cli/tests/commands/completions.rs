//! Completion in the real shells: bash, zsh and fish, which `./check` installs.

use std::path::Path;

use crate::support::Sandbox;
use crate::terminal::Terminal;

/// Threads, takes and files to complete.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Why?"]);
    sandbox.done(&["take", "branch", "1", "--name", "shorter"]);
    sandbox.done(&["run", "say Because."]);
    sandbox.done(&["save", "release"]);
    sandbox.write("answer.md", "x");
    sandbox
}

/// What completing the last of these words offers.
fn offered(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let printed = sandbox.done(&[&["__complete", "--"], words].concat());
    printed.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
}

#[test]
fn names_come_from_the_store() {
    let sandbox = sandbox();
    for (words, expected) in [
        (&["und"][..], &["undo"][..]),
        (&["take", "switch", ""], &["main", "shorter"]),
        (&["take", "delete", "main", "s"], &["shorter"]),
        (&["take", "rename", "sh"], &["shorter"]),
        (&["switch", "f"], &["Fix the login"]),
        (&["show", "-k", "m"], &["main"]),
        (&["run", "-t", "Fix"], &["Fix the login"]),
        (&["entry", "show", "l"], &["last"]),
        (&["edit", "2"], &["2"]),
        (&["jump", "rel"], &["release"]),
        (&["jump", "turn:"], &["turn:1"]),
        (&["run", "--model", "offl"], &["offline"]),
        (&["run", "--provider", "anth"], &["anthropic"]),
        (&["keys", "set", "anth"], &["anthropic"]),
        (&["settings", "get", "temp"], &["temperature"]),
        (&["config", "get", "storage.b"], &["storage.budget"]),
        (&["run", "--approve", "e"], &["edits"]),
        (&["--resume", "F"], &["Fix the login"]),
        (&["import", "ans"], &["answer.md"]),
        (&["take", "switch", "nothing"], &[]),
    ] {
        assert_eq!(offered(&sandbox, words), expected, "{words:?}");
    }
    let empty = Sandbox::new();
    assert!(offered(&empty, &["take", "switch", ""]).iter().all(|value| value.starts_with('-')));
    assert!(!empty.project().with_file_name("store").exists(), "completion creates no store");
}

/// Types in a shell until the line is completed.
fn check(shell: &str, arguments: &[&str], start: &str) {
    let sandbox = sandbox();
    let script = sandbox.done(&["completions", shell]);
    let file = sandbox.project().with_file_name("script");
    std::fs::write(&file, script).expect("our folder");
    let program = Path::new(env!("CARGO_BIN_EXE_retake")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut terminal =
        Terminal::program(shell, &sandbox, arguments, &[("PATH", &path), ("NO_COLOR", "1"), ("PS1", "$ ")]);
    terminal.type_keys(&format!("{}\r", start.replace("SCRIPT", &file.display().to_string())));
    terminal.wait_for_last("READY");
    for (typed, expected) in [
        ("retake und", "retake undo"),
        ("retake take switch sh", "retake take switch shorter"),
        ("retake run --model offl", "retake run --model offline"),
        ("retake config get storage.b", "retake config get storage.budget"),
        ("retake import ans", "retake import answer.md"),
        ("retake switch Fi", "Fix"),
    ] {
        terminal.type_keys(&format!("{typed}\t"));
        terminal
            .wait_until_last(|line| line.contains(expected) && (expected != "Fix" || line.contains("login")));
        let line = terminal.screen().pop().unwrap_or_default();
        if expected == "Fix" {
            let quoted = ["'Fix the login'", r"Fix\ the\ login"].iter().any(|name| line.contains(name));
            assert!(quoted, "{shell}: {line}");
        }
        // Clears the line.
        terminal.type_keys("\u{5}\u{15}");
        terminal.wait_until_last(|line| !line.contains("retake"));
    }
}

#[test]
fn bash_completes() {
    check(
        "bash",
        &["--norc", "--noprofile", "-i"],
        "source 'SCRIPT'; PS1='READY'; bind 'set enable-bracketed-paste off'; clear",
    );
}

#[test]
fn zsh_completes() {
    assert_installed("zsh");
    check("zsh", &["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source 'SCRIPT'; PS1=READY; clear");
}

#[test]
fn fish_completes() {
    assert_installed("fish");
    check("fish", &["--no-config", "-i"], "source 'SCRIPT'; function fish_prompt; echo -n READY; end; clear");
}

/// A missing shell is a failure: a test that skips itself would hide that completion is untested.
fn assert_installed(shell: &str) {
    let found = std::env::var("PATH")
        .is_ok_and(|path| std::env::split_paths(&path).any(|folder| folder.join(shell).is_file()));
    assert!(found, "{shell} is not installed: install it, or run ./check, which does");
}
