//! Signals on a real terminal: the program ends and leaves nothing behind.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::Sandbox;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// The program on a terminal, and its screen.
struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: 10, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("the system has a terminal left");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_retake"));
        command.args(arguments);
        command.cwd(sandbox.project());
        command.env_clear();
        for (name, value) in sandbox.environment() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program was just built");
        let mut reader = pair.master.try_clone_reader().expect("the terminal can be read");
        let keyboard = pair.master.take_writer().expect("the terminal can be written to");
        let shown = Arc::new(Mutex::new(String::new()));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                screen.lock().expect("no panic").push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Self { master: pair.master, keyboard, child, shown }
    }

    fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("someone listens");
    }

    /// Waits until a text was shown this many times.
    fn wait_for(&self, text: &str, times: usize) {
        let seen = || self.shown.lock().expect("no panic").matches(text).count() >= times;
        wait_until(&format!("{text:?} is shown"), seen);
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.process_id().expect("it runs");
        kill_process(process(id), signal).expect("it runs");
    }

    /// Whether it ends within a few seconds.
    fn ends(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.child.try_wait().expect("a child can be asked").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        false
    }

    fn echoes(&self) -> bool {
        let modes = self.master.get_termios().expect("a terminal has modes");
        // Other flags start with the same letters.
        format!("{:?}", modes.local_flags)
            .split(|mark: char| !mark.is_alphanumeric())
            .any(|flag| flag == "ECHO")
    }
}

fn process(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("a process number")).expect("a process number")
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_at_the_prompt_ends_chat() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::start(&sandbox, &["chat"], &[]);
        terminal.wait_for("›", 1);
        terminal.type_line("say Hello.");
        terminal.wait_for("›", 2);
        std::thread::sleep(Duration::from_millis(300));
        terminal.signal(signal);
        assert!(terminal.ends(), "{signal:?} has no effect at the prompt");
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
    assert!(!terminal.shown.lock().expect("no panic").contains(KEY), "the key is on the screen");
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
    terminal.keyboard.write_all(b"half\x03").expect("someone listens");
    terminal.wait_for("nothing was stored", 1);
    assert!(terminal.ends() && terminal.echoes(), "Ctrl-C gives up");
}
