//! `retake chat` on a real terminal.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::Sandbox;
use crate::terminal::{Terminal, wait_until};

const ALT_ENTER: &str = "\u{1b}\r";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const UP: &str = "\u{1b}[A";

fn chat(sandbox: &Sandbox, arguments: &[&str]) -> Terminal {
    let terminal = Terminal::start(sandbox, &[&["chat"], arguments].concat(), &[("NO_COLOR", "1")]);
    terminal.wait_for_last("›");
    terminal
}

/// Sends a line and waits for the next prompt.
fn send(terminal: &mut Terminal, keys: &str) {
    let turns = terminal.shown().matches("undoes the turn").count();
    terminal.type_keys(keys);
    terminal.type_keys("\r");
    terminal.wait_for("undoes the turn", turns + 1);
    terminal.wait_for_last("›");
}

/// Runs a command of the chat, whose output contains this text.
fn command(terminal: &mut Terminal, line: &str, shown: &str) {
    let before = terminal.shown().matches(shown).count();
    terminal.type_keys(line);
    terminal.type_keys("\r");
    terminal.wait_for(shown, before + 1);
    terminal.wait_for_last("›");
}

/// The texts of the user's entries.
fn prompts(sandbox: &Sandbox) -> Vec<String> {
    let shown = sandbox.json(&["thread", "show", "--all"]);
    let entries = shown["entries"].as_array().expect("entries");
    let users = entries.iter().filter(|entry| entry["entry"]["role"] == "User");
    users.map(|entry| entry["entry"]["blocks"][0]["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn several_lines_are_one_message_however_they_are_typed() {
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    for (keys, expected) in [
        ("\u{1b}[200~say one\r\nsay two\nsay three\u{1b}[201~", "say one\nsay two\nsay three"),
        // A backslash that was pasted before a line break stays.
        ("\u{1b}[200~say one \\\rtwo\u{1b}[201~", "say one \\\ntwo"),
        (&format!("say one{ALT_ENTER}two"), "say one\ntwo"),
        ("say one\\\rtwo", "say one\ntwo"),
        ("say a\\b", "say a\\b"),
    ] {
        send(&mut terminal, keys);
        assert_eq!(prompts(&sandbox).last().map(String::as_str), Some(expected), "{keys:?}");
    }
    assert_eq!(prompts(&sandbox).len(), 5);
}

#[test]
fn ctrl_c_clears_the_line_and_ctrl_d_leaves() {
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    assert!(!terminal.echoes(), "the control: the line editor took the echo away");
    terminal.type_keys("say something else");
    terminal.wait_for_last("› say something else");
    terminal.type_keys(CTRL_C);
    terminal.wait_for_last("›");
    assert!(!terminal.shown().contains("leaves the chat"));
    command(&mut terminal, CTRL_C, "Ctrl-D or /quit leaves the chat.");
    send(&mut terminal, "say hello");
    assert!(terminal.shown().contains("`/undo` undoes the turn"), "commands are suggested as they are typed");
    assert_eq!(prompts(&sandbox), ["say hello"]);
    terminal.type_keys(CTRL_D);
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.echoes(), "the terminal is as it was");
}

#[test]
fn earlier_lines_are_recalled_in_their_project_until_they_are_destroyed() {
    const SECRET: &str = "say the secret word is xyzzy-1976";
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    send(&mut terminal, "say first");
    send(&mut terminal, SECRET);
    send(&mut terminal, " say nothing of this");
    terminal.type_keys(CTRL_D);
    assert_eq!(terminal.exit_code(), 0);

    let recalled = |expected: [&str; 2]| {
        let mut terminal = chat(&sandbox, &[]);
        for line in expected {
            terminal.type_keys(UP);
            terminal.wait_for_last(format!("› {line}").trim_end());
        }
        if expected[1].is_empty() {
            command(&mut terminal, CTRL_C, "leaves the chat");
        } else {
            terminal.type_keys(CTRL_C);
            terminal.wait_for_last("›");
        }
        terminal.type_keys(CTRL_D);
        assert_eq!(terminal.exit_code(), 0);
    };
    recalled([SECRET, "say first"]);
    let database = sandbox.project().with_file_name("store").join("ledger.db");
    let mode = std::fs::metadata(&database).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let other = Sandbox::new();
    let mut terminal = chat(&other, &[]);
    terminal.type_keys(UP);
    terminal.type_keys("fresh");
    terminal.wait_for_last("› fresh");
    drop(terminal);

    sandbox.done(&["redact", "3", "--yes"]);
    recalled(["say first", "say first"]);
    let id = sandbox.json(&["thread", "info"])["id"].as_str().expect("an id").to_owned();
    sandbox.done(&["new", "Another"]);
    sandbox.done(&["thread", "delete", &id]);
    sandbox.done(&["purge", &id, "--yes"]);
    recalled(["", ""]);
}

#[test]
fn commands_names_and_files_are_completed() {
    let sandbox = Sandbox::new();
    sandbox.done(&["new", "Fix the login"]);
    sandbox.done(&["entry", "add", "Why?"]);
    sandbox.done(&["take", "branch", "1", "--name", "shorter"]);
    sandbox.write("notes.md", "x");
    std::fs::create_dir(sandbox.project().join("src")).expect("our folder");
    sandbox.write("src/main.rs", "x");
    sandbox.write("src/ignored.log", "x");
    sandbox.write(".gitignore", "*.log\n");
    let mut terminal = chat(&sandbox, &[]);
    for (typed, completed) in [
        ("/und\t", "/undo"),
        ("/comp\t\t", "/comp"),
        ("/switch sho\t", "/switch shorter"),
        ("/switch Fi\t", "/switch 'Fix the login'"),
        ("/entry sh\t", "/entry show"),
        ("/model off\t", "/model offline"),
        ("/approve ed\t", "/approve edits"),
        ("/undo --conver\t", "/undo --conversation"),
        ("look at @no\t", "look at @notes.md"),
        ("look at @src/\t", "look at @src/main.rs"),
        ("look at @mai\t", "look at @src/main.rs"),
        ("look at no\t", "look at no"),
    ] {
        terminal.type_keys(typed);
        terminal.wait_for_last(&format!("› {completed}"));
        terminal.type_keys(CTRL_C);
        terminal.wait_for_last("›");
    }
    let shown = terminal.shown();
    for name in ["/compact", "compare", "compress"] {
        assert!(shown.contains(name.trim_start_matches('/')), "{name} is offered for /comp");
    }
}

#[test]
fn the_header_says_where_messages_go() {
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    terminal.wait_for("New thread · model offline · approval ask", 1);
    send(&mut terminal, "say hello");
    terminal.wait_for("say hello / main · model offline", 1);
    command(&mut terminal, "/approve edits", "approval edits");
    command(&mut terminal, "/approve nothing", "there is no approval");
    command(&mut terminal, "/model", "The model is offline.");
    command(&mut terminal, "/model nowhere/x", "no provider \"nowhere\"");
    command(&mut terminal, "/fork 1 --name again", "say hello / again");
    command(&mut terminal, "/new Something else", "unexpected argument");
    command(&mut terminal, "/new 'Something else'", "Something else / main · model offline");
    send(&mut terminal, "say in the new thread");
    assert_eq!(prompts(&sandbox), ["say in the new thread"]);
    command(&mut terminal, "/switch 'say hello'", "say hello / again");
    command(&mut terminal, "/takes", "FORKED FROM");
}

#[test]
fn commands_of_the_shell_are_recorded_and_undone() {
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    command(&mut terminal, "!echo one > a.txt", "a.txt");
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    command(&mut terminal, "!exit 3", "›");
    terminal.type_keys("/undo\r");
    terminal.wait_for("Continue?", 1);
    command(&mut terminal, "y", "1 file removed");
    assert_eq!(sandbox.read("a.txt"), None);
    command(&mut terminal, "/cost", "No model was called");
    command(&mut terminal, "/help", "/approve MODE");
}

#[test]
fn mentioned_files_are_part_of_the_message() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "forty-two\n");
    let mut terminal = chat(&sandbox, &[]);
    send(&mut terminal, "say what is in @a.txt?");
    terminal.wait_for("Attached a.txt.", 1);
    assert_eq!(prompts(&sandbox), ["say what is in @a.txt?\n\na.txt:\n\n```txt\nforty-two\n```"]);
    assert_eq!(sandbox.json(&["thread", "list"])["threads"][0]["title"], "say what is in @a.txt?");
}

#[test]
fn what_is_typed_during_a_turn_comes_next() {
    let sandbox = Sandbox::new();
    let mut terminal = chat(&sandbox, &[]);
    terminal.type_keys("wait 1\r");
    wait_until("the turn runs", || sandbox.run(&["steer", "and then stop"]).code == 0);
    terminal.type_keys("say later\rsay last\r");
    terminal.wait_for("undoes the turn", 3);
    terminal.wait_for_last("›");
    let sent = prompts(&sandbox);
    assert_eq!(sent[sent.len() - 2..], ["say later", "say last"], "{sent:?}");
}

#[test]
fn a_pipe_is_read_line_by_line() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "x");
    let output = sandbox.run_with(&["chat"], "!echo\nsay @a.txt\nsay one\\\ntwo\n/undo\n/quit\nsay no\n");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(prompts(&sandbox), ["!echo", "say @a.txt"]);
    let dumb = Terminal::start(&sandbox, &["chat"], &[("TERM", "dumb")]);
    dumb.wait_for("/quit leaves.", 1);
    assert!(dumb.echoes(), "no line editor on a terminal that cannot move its cursor");
    let refused: Value = sandbox.refused(&["chat"]).1;
    assert!(refused["message"].to_string().contains("retake run --json"), "{refused}");
}
