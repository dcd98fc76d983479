//! A user with a temporary store, configuration and project folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct User {
    pub(crate) folder: tempfile::TempDir,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl User {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for below in ["project", "elsewhere", "temporary"] {
            fs::create_dir(folder.path().join(below)).expect("a new folder");
        }
        Self { folder }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retake"));
        self.surround(&mut command);
        command
    }

    /// Sets the environment of this user.
    pub(crate) fn surround(&self, command: &mut Command) {
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.path("temporary"))
            .env("RETAKE_HOME", self.path("store"))
            .env("RETAKE_CONFIG", self.path("configuration/config.toml"))
            .stdin(Stdio::null());
    }

    /// Runs the program.
    pub(crate) fn try_run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> CommandOutput {
        command_output(self.command().args(arguments).output().expect("the program starts"))
    }

    /// Runs the program, which must succeed; returns its output.
    pub(crate) fn run<A: AsRef<OsStr> + std::fmt::Debug>(&self, arguments: &[A]) -> String {
        let printed = self.try_run(arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {printed:?}");
        printed.out
    }

    /// Runs the program with `--json`, which must succeed; returns its answer.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        serde_json::from_str(&self.run(&all)).expect("an answer in JSON")
    }

    /// Runs the program, which must fail with this code; returns its error.
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let printed = self.try_run(arguments);
        assert_eq!(printed.code, code, "{arguments:?}: {printed:?}");
        assert!(!printed.err.is_empty(), "{arguments:?} failed without a word");
        printed.err
    }

    /// A thread with a short conversation.
    pub(crate) fn talk(&self, title: &str) {
        self.run(&["thread", "new", title]);
        self.run(&["entry", "add", "Why does the login fail?"]);
        self.run(&["entry", "add", "--role", "AI", "The cookie expires too early."]);
        self.run(&["entry", "edit", "2", "The cookie has expired."]);
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a new file");
        path
    }
}

pub(crate) fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().expect("the program was not killed"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// All files and folders below one, including itself.
pub(crate) fn everything_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while next < found.len() {
        if found[next].is_dir() {
            let entries = fs::read_dir(&found[next]).expect("a readable folder");
            found.extend(entries.map(|entry| entry.expect("a readable entry").path()));
        }
        next += 1;
    }
    found
}

/// Reproducible random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
