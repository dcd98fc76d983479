//! Reads keys from files and commands.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::provider::Secret;

/// Maximum size of a key.
const KEY_BYTES: u64 = 16 * 1024;

/// Why a key file or key command cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("the key file {} cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The command printed no key.
    #[error("the command {command:?} printed no key: {reason}")]
    Command {
        /// The command.
        command: String,
        /// The reason.
        reason: String,
    },
    /// Other users can read the file.
    #[error("other users can read the key file {}; run: chmod 600 {}", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a key from a file. A leading `~/` is the user's home folder.
pub fn read_key_file(path: &Path, home: Option<&Path>) -> Result<Secret, KeyFileError> {
    let path = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    let unreadable = |reason: String| KeyFileError::Unreadable { path: path.clone(), reason };
    let file = std::fs::File::open(&path).map_err(|error| unreadable(error.to_string()))?;
    // Check the open file, not the path, so that the file cannot be replaced in between.
    let facts = file.metadata().map_err(|error| unreadable(error.to_string()))?;
    if !facts.is_file() {
        return Err(unreadable("not a file".to_owned()));
    }
    if facts.permissions().mode() & 0o077 != 0 {
        return Err(KeyFileError::Open { path });
    }
    let mut text = String::new();
    file.take(KEY_BYTES).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
    if text.trim().is_empty() {
        return Err(unreadable("it is empty".to_owned()));
    }
    Ok(Secret::new(&text))
}

/// Runs a command that prints a key, such as one that reads a keyring. It comes from the user's configuration
/// and may ask for a password at the terminal.
pub fn run_key_command(command: &str) -> Result<Secret, KeyFileError> {
    let failed = |reason: String| KeyFileError::Command { command: command.to_owned(), reason };
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .stderr(Stdio::inherit())
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("it printed nothing".to_owned()))?;
    if text.trim().is_empty() || text.len() as u64 > KEY_BYTES {
        return Err(failed(format!("it wrote {} bytes", text.len())));
    }
    Ok(Secret::new(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_command_returns_a_key_or_an_error() {
        let key = run_key_command("printf 'k-123\\n'").expect("a key");
        assert_eq!(key.redact("it is k-123"), Secret::new("k-123").redact("it is k-123"));
        for command in ["true", "exit 3", "no-such-command-at-all 2>/dev/null", "printf '\\377'"] {
            assert!(matches!(run_key_command(command), Err(KeyFileError::Command { .. })), "{command}");
        }
    }

    #[test]
    fn a_key_file_readable_by_others_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |name: &str, content: &str, mode: u32, good: bool| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
            let read = read_key_file(&Path::new("~").join(name), Some(folder.path()));
            assert_eq!(read.is_ok(), good, "{name}: {read:?}");
            assert_eq!(read_key_file(&path, None).is_ok(), good);
        };
        check("good", "sk-1\n", 0o600, true);
        check("read-only", "sk-1", 0o400, true);
        check("group", "sk-1", 0o640, false);
        check("world", "sk-1", 0o604, false);
        check("empty", " \n", 0o600, false);
        for (path, words) in [("nowhere", "cannot be read"), (".", "not a file")] {
            let error = read_key_file(&folder.path().join(path), None).expect_err("no key");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
