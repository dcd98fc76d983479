//! Signals on a real terminal: the program ends and leaves nothing behind.

use crate::support::Sandbox;
use crate::terminal::{Terminal, process, wait_until};
use rustix::process::{Signal, test_kill_process};

#[test]
fn a_signal_at_the_prompt_ends_chat() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::start(&sandbox, &["chat"], &[]);
        terminal.wait_for_last("›");
        terminal.type_line("say Hello.");
        terminal.wait_for("undoes the turn", 1);
        terminal.wait_for_last("›");
        assert!(!terminal.echoes(), "the control: the line editor took the echo away");
        terminal.signal(signal);
        assert!(terminal.ends(), "{signal:?} has no effect at the prompt");
        wait_until("the terminal is as it was", || terminal.echoes());
        wait_until("pasting is as it was", || {
            let shown = terminal.shown();
            shown.rfind("\u{1b}[?2004l") > shown.rfind("\u{1b}[?2004h")
        });
    }
}

#[test]
fn sigterm_and_a_closed_terminal_leave_a_turn_to_be_resumed_and_ctrl_c_ends_it() {
    for (arguments, signal, resumable) in [
        (&["run", "wait 60"][..], Signal::TERM, true),
        (&["run", "wait 60"], Signal::HUP, true),
        (&["run", "wait 60"], Signal::INT, false),
        (&["chat"], Signal::TERM, true),
    ] {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::start(&sandbox, arguments, &[]);
        if arguments[0] == "chat" {
            terminal.wait_for("›", 1);
            terminal.type_line("wait 60");
        }
        wait_until("the turn runs", || sandbox.run(&["steer", "and then stop"]).code == 0);
        terminal.signal(signal);
        assert!(terminal.ends(), "{arguments:?}: {signal:?} has no effect");
        let closed = sandbox.run(&["stop", "--json"]);
        assert_eq!(closed.code == 0, resumable, "{arguments:?} {signal:?}: {}", closed.stdout);
        assert_eq!(sandbox.run(&["resume"]).code, 3, "{arguments:?} {signal:?}: it is closed now");
    }
}

/// A pager that disables echo, prints its process id, and does not read.
const PAGER: &str = "sh -c 'stty -echo </dev/tty; echo $$ > \"$HOME/pager\"; exec sleep 60'";

#[test]
fn a_signal_ends_the_pager_and_restores_the_terminal() {
    for (arguments, signal) in [
        (&["thread", "show"][..], Signal::TERM),
        (&["thread", "show"], Signal::HUP),
        (&["chat"], Signal::TERM),
    ] {
        let sandbox = Sandbox::new();
        let home = sandbox.project().parent().expect("it is in a folder").join("home");
        std::fs::create_dir_all(&home).expect("our folder");
        let long = "A line of the thread\n\n".repeat(200);
        sandbox.done(&["thread", "new", "Long"]);
        sandbox.run_with(&["entry", "add"], &long);
        let mut terminal = Terminal::start(&sandbox, arguments, &[("RETAKE_PAGER", PAGER)]);
        if arguments == ["chat"] {
            terminal.wait_for("›", 1);
            terminal.type_line("/thread show");
        }
        let number = home.join("pager");
        let written = || std::fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n'));
        wait_until("the pager runs", written);
        let pager = std::fs::read_to_string(&number).expect("the pager runs");
        let pager = process(pager.trim().parse().expect("a number"));
        assert!(!terminal.echoes(), "the control: the pager took the echo away");
        terminal.signal(signal);
        assert!(terminal.ends(), "{arguments:?}: {signal:?} has no effect");
        wait_until("the pager has ended", || test_kill_process(pager).is_err());
        assert!(terminal.echoes(), "{arguments:?}: the terminal is as it was");
    }
}

/// An editor that disables echo, optionally saves a text, prints its process id, and keeps running.
const EDITOR: &str = "sh -c 'stty -echo </dev/tty; if [ -n \"$TYPED\" ]; then printf %s \"$TYPED\" > \"$1\"; fi; \
     echo \"$1\" > \"$HOME/edited\"; echo $$ > \"$HOME/editor\"; exec sleep 60' sh";

#[test]
fn a_signal_ends_the_editor_restores_the_terminal_and_saves_the_text() {
    for (signal, typed) in [(Signal::TERM, "a new text"), (Signal::HUP, "a new text"), (Signal::TERM, "")] {
        let sandbox = Sandbox::new();
        let home = sandbox.project().parent().expect("it is in a folder").join("home");
        std::fs::create_dir_all(&home).expect("our folder");
        sandbox.done(&["thread", "new", "Edited"]);
        let variables = [("RETAKE_EDITOR", EDITOR), ("TYPED", typed)];
        let mut terminal = Terminal::start(&sandbox, &["entry", "add"], &variables);
        let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
        wait_until("the editor runs", || read("editor").ends_with('\n'));
        let editor = process(read("editor").trim().parse().expect("a number"));
        let file = std::path::PathBuf::from(read("edited").trim());
        assert!(!terminal.echoes(), "the control: the editor took the echo away");
        terminal.signal(signal);
        assert!(terminal.ends(), "{signal:?} has no effect");
        wait_until("the editor has ended", || test_kill_process(editor).is_err());
        assert!(terminal.echoes(), "the terminal is as it was");
        if typed.is_empty() {
            assert!(!file.parent().expect("a folder of its own").exists(), "nothing is left of nothing");
        } else {
            assert_eq!(std::fs::read_to_string(&file).expect("the text was kept"), typed);
            terminal.wait_for(file.to_str().expect("text"), 1);
            std::fs::remove_dir_all(file.parent().expect("a folder of its own")).expect("cleaning up");
        }
    }
}

#[test]
fn a_typed_key_is_hidden_and_a_signal_restores_the_echo() {
    const KEY: &str = "sk-typed-by-hand-1";
    let sandbox = Sandbox::new();
    let arguments = ["keys", "set", "anthropic"];
    let off = [("RETAKE_KEYRING", "off")];
    let mut terminal = Terminal::start(&sandbox, &arguments, &off);
    terminal.wait_for("Key of anthropic:", 1);
    wait_until("the echo is off", || !terminal.echoes());
    terminal.type_line(KEY);
    terminal.wait_for("Stored the key", 1);
    assert!(terminal.ends(), "it is done");
    assert!(!terminal.shown().contains(KEY), "the key is on the screen");
    assert!(terminal.echoes(), "the terminal is as it was");
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = Terminal::start(&sandbox, &arguments, &off);
        terminal.wait_for("Key of anthropic:", 1);
        wait_until("the echo is off", || !terminal.echoes());
        terminal.signal(signal);
        assert!(terminal.ends(), "{signal:?} has no effect");
        assert!(terminal.echoes(), "{signal:?}: the terminal is as it was");
    }
    let mut terminal = Terminal::start(&sandbox, &arguments, &off);
    terminal.wait_for("Key of anthropic:", 1);
    wait_until("the echo is off", || !terminal.echoes());
    terminal.type_keys("half\u{3}");
    terminal.wait_for("nothing was stored", 1);
    assert!(terminal.ends() && terminal.echoes(), "Ctrl-C gives up");
}
