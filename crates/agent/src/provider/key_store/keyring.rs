//! The system keyring, through its command-line program: needs no library and no daemon protocol.
//!
//! Linux has `secret-tool` (libsecret: GNOME Keyring, `KWallet`, `KeePassXC`), macOS `security`. Keys are
//! passed on standard input, because other users can list arguments.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::provider::Secret;

/// Timeout: a locked keyring asks for its password, possibly without a user present.
const WAIT: Duration = Duration::from_mins(1);

/// Poll interval while the program runs.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum bytes read of a key.
const KEY_BYTES: u64 = 16 * 1024;

/// A keyring.
#[derive(Clone, Debug)]
pub(super) enum Keyring {
    /// `secret-tool` of libsecret.
    SecretTool(PathBuf),
    /// `security` of macOS.
    Security(PathBuf),
}

impl Keyring {
    /// Finds the first keyring program in the search path.
    pub(super) fn find(path: Option<&OsStr>) -> Option<Self> {
        let find = |name: &str| {
            std::env::split_paths(path?)
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join(name))
                .find(|file| file.is_file())
        };
        if cfg!(target_os = "macos") {
            return find("security").map(Self::Security);
        }
        find("secret-tool").map(Self::SecretTool)
    }

    pub(super) fn set(&self, provider: &str, key: &Secret) -> Result<(), String> {
        let stored = match self {
            Self::SecretTool(program) => {
                let label = format!("--label=Retake: {provider}");
                let words = ["store", &label, "application", "retake", "provider", provider];
                run(Command::new(program).args(words), key.reveal())
            }
            Self::Security(program) => {
                let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
                let line = format!(
                    "add-generic-password -U -s retake -a {} -w {}\n",
                    quoted(provider),
                    quoted(key.reveal())
                );
                run(Command::new(program).arg("-i"), &line)
            }
        };
        stored?;
        // The program may report success without storing the key, so read it back.
        match self.get(provider) {
            Ok(read) if read == *key => Ok(()),
            Ok(_) => Err("it stored something else".to_owned()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn get(&self, provider: &str) -> Result<Secret, String> {
        let output = match self {
            Self::SecretTool(program) => {
                run(Command::new(program).args(["lookup", "application", "retake", "provider", provider]), "")
            }
            Self::Security(program) => run(
                Command::new(program).args(["find-generic-password", "-s", "retake", "-a", provider, "-w"]),
                "",
            ),
        };
        let key = Secret::new(&output?);
        if key.is_usable() { Ok(key) } else { Err("it has none".to_owned()) }
    }

    pub(super) fn remove(&self, provider: &str) -> Result<(), String> {
        let output = match self {
            Self::SecretTool(program) => {
                run(Command::new(program).args(["clear", "application", "retake", "provider", provider]), "")
            }
            Self::Security(program) => run(
                Command::new(program).args(["delete-generic-password", "-s", "retake", "-a", provider]),
                "",
            ),
        };
        output.map(drop)
    }
}

/// Runs a program with this input; returns its output.
fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    // The pipe closes at the end of the statement; the program waits for that.
    let written = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let deadline = Instant::now() + WAIT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it did not answer".to_owned());
            }
        }
    };
    if !status.success() {
        return Err(status.to_string());
    }
    // Ignore a write error if the program succeeds without reading its input.
    let _ = written;
    let mut output = String::new();
    let read = child.stdout.take().expect("it is piped").take(KEY_BYTES).read_to_string(&mut output);
    read.map_err(|error| error.to_string())?;
    Ok(output)
}
