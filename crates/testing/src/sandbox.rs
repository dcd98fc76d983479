//! The real program in a sandbox: a temporary store, configuration and project folder.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;
use tempfile::TempDir;

use crate::program;

/// A temporary store, configuration and project folder.
pub struct Sandbox {
    folder: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// Creates a sandbox with an empty project.
    pub fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a temporary folder");
        std::fs::create_dir(folder.path().join("project")).expect("the folder is ours");
        Self { folder }
    }

    /// The project's folder.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The path of the configuration file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).expect("our folder");
    }

    /// Reads a file of the project; `None` if it does not exist.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project().join(name)).ok()
    }

    /// Runs a script as an agent.
    pub fn agent(&self, script: &str) {
        self.done(&["exec", "--", "sh", "-c", script]);
    }

    /// Runs the program in the project's folder, with empty standard input.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_in(&self.project(), arguments, "")
    }

    /// Runs the program with this standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        self.run_in(&self.project(), arguments, input)
    }

    /// Runs the program in another folder.
    pub fn run_in(&self, folder: &Path, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(program())
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was just built");
        // A program that does not read may have exited already.
        let _ = child.stdin.take().expect("standard input is a pipe").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("a child can be waited for");
        Output {
            stdout: String::from_utf8(output.stdout).expect("the program writes text"),
            stderr: String::from_utf8(output.stderr).expect("the program writes text"),
            code: output.status.code().expect("the program was not killed"),
        }
    }

    /// Runs the program, which must succeed, and returns its output.
    pub fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        output.stdout
    }

    /// Runs the program with `--json`; it must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        // First, because `exec` passes what comes last on to its command.
        let text = self.done(&[&["--json"], arguments].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error} in {text}"))
    }

    /// Runs the program with `--json`; it must fail. Returns the exit code and the error.
    pub fn refused(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["--json"], arguments].concat());
        assert_ne!(output.code, 0, "{arguments:?} was done: {}", output.stdout);
        assert_eq!(output.stdout, "", "{arguments:?} answered and failed");
        let error: Value = serde_json::from_str(&output.stderr).expect("errors are JSON too");
        (output.code, error["error"].clone())
    }

    /// Runs the program on a terminal of this width, and returns the lines on its screen.
    pub fn screen(&self, columns: u16, arguments: &[&str]) -> Vec<String> {
        let (lines, code) = self.on_terminal(columns, arguments, &[]);
        assert_eq!(code, 0, "{arguments:?}: {lines:?}");
        lines
    }

    /// The same with more environment variables; returns the exit code too.
    pub fn on_terminal(
        &self,
        columns: u16,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (Vec<String>, u32) {
        self.typing_on_terminal(columns, arguments, variables, &[("", "")])
    }

    /// Runs the program on a terminal, with typed input.
    pub fn answered(&self, columns: u16, arguments: &[&str], typed: &str) -> Vec<String> {
        self.typing_on_terminal(columns, arguments, &[], &[("", typed)]).0
    }

    /// The same, typing each text once the previous one is on the screen.
    pub fn answered_when(&self, columns: u16, arguments: &[&str], typing: &[(&str, &str)]) -> Vec<String> {
        self.typing_on_terminal(columns, arguments, &[], typing).0
    }

    fn typing_on_terminal(
        &self,
        columns: u16,
        arguments: &[&str],
        variables: &[(&str, &str)],
        typing: &[(&str, &str)],
    ) -> (Vec<String>, u32) {
        let rows = 200;
        let terminal = native_pty_system()
            .openpty(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 })
            .expect("the system has a terminal left");
        let mut command = CommandBuilder::new(program());
        command.args(arguments);
        command.cwd(self.project());
        command.env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let mut child = terminal.slave.spawn_command(command).expect("the program was just built");
        drop(terminal.slave);
        let mut reader = terminal.master.try_clone_reader().expect("the terminal can be read");
        let mut keyboard = terminal.master.take_writer().expect("the terminal can be written to");
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        let mut typing = typing.iter().peekable();
        loop {
            let on_screen = String::from_utf8_lossy(&bytes).into_owned();
            while let Some((_, typed)) = typing.next_if(|(seen, _)| on_screen.contains(seen)) {
                keyboard.write_all(typed.as_bytes()).expect("someone listens");
            }
            // On Linux, reading a terminal fails once its program has ended.
            match reader.read(&mut piece) {
                Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        let code = child.wait().expect("a child can be waited for").exit_code();
        let size = |number| std::num::NonZero::new(number).expect("a terminal has a size");
        let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
        parser.process(&bytes);
        let mut lines: Vec<String> =
            parser.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect();
        lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        (lines, code)
    }

    /// The text with varying parts replaced: short thread ids become `thread-A`, in order of creation.
    pub fn redact(&self, text: &str) -> String {
        let threads = self.json(&["thread", "list", "--all"]);
        let mut ids: Vec<(String, String)> = threads["threads"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|thread| (field(thread, "created"), field(thread, "id")))
            .collect();
        ids.sort();
        let mut text = text.to_owned();
        for (letter, (_, id)) in ('A'..='Z').zip(ids) {
            text = text.replace(&id[..8], &format!("thread-{letter}"));
        }
        text
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let inside = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        [
            ("HOME", inside("home")),
            ("RETAKE_HOME", inside("store")),
            ("RETAKE_CONFIG", inside("config.toml")),
            ("PATH", path),
            ("TERM", "xterm-256color".to_owned()),
            ("TZ", "UTC".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A free port.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}
