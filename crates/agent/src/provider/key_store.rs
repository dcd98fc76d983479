//! Keys stored with `retake keys set`, in the system keyring or in a file that only its owner can read.
//!
//! ```text
//!   retake-keys.json (0600)   {"anthropic": "keyring"}             ─► secret-tool, security
//!                      {"openai": {"key": "sk-…"}}          where there is no keyring
//! ```
//!
//! The file lists all stored keys, so that no command asks the keyring for providers that it does not use.

mod keyring;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Secret;
use keyring::Keyring;

/// Maximum size of the file; a key has at most a few hundred bytes.
const FILE_BYTES: u64 = 1 << 20;

/// The name of the file. It is reserved: snapshots exclude every file of this name, and tools may not read
/// it.
pub const FILE_NAME: &str = "retake-keys.json";

/// The keys of a user.
#[derive(Clone, Debug)]
pub struct KeyStore {
    file: PathBuf,
    keyring: Option<Keyring>,
}

/// Where a key is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyLocation {
    /// In the system keyring.
    Keyring,
    /// In a file that only its owner can read.
    File,
}

/// Why a key cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyStoreError {
    /// There is no folder for keys.
    #[error("there is no folder for keys; set HOME, or RETAKE_CONFIG to the path of a configuration file")]
    NoFolder,
    /// Other users can read the file.
    #[error("other users can read {}; run: chmod 600 {}", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The keyring does not respond.
    #[error(
        "the keyring returned no key for {provider} ({reason}); unlock it, or run `retake keys set {provider}` again"
    )]
    Keyring {
        /// The provider.
        provider: String,
        /// The reason.
        reason: String,
    },
    /// The input is not a valid key.
    #[error("a key is one line of visible ASCII characters; nothing was stored")]
    NotAKey,
}

/// How the file stores a key.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum StoredKey {
    Plain { key: String },
    InKeyring(String),
}

type StoredKeys = BTreeMap<String, StoredKey>;

impl KeyStore {
    /// The keys of the current user. `RETAKE_KEYRING=off` disables the keyring.
    pub fn from_process() -> Result<Self, KeyStoreError> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let beside_config = variable("RETAKE_CONFIG").and_then(|path| Some(path.parent()?.to_owned()));
        let config = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let config = config.or_else(|| Some(variable("HOME")?.join(".config")));
        let folder = beside_config.or_else(|| Some(config?.join("retake"))).ok_or(KeyStoreError::NoFolder)?;
        let off = std::env::var_os("RETAKE_KEYRING").is_some_and(|value| value == "off");
        let keyring = if off { None } else { Keyring::find(std::env::var_os("PATH").as_deref()) };
        Ok(Self { file: folder.join(FILE_NAME), keyring })
    }

    /// Keys in this file only, without a keyring.
    pub fn in_file(file: &Path) -> Self {
        Self { file: file.to_owned(), keyring: None }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The providers with a stored key, and where each key is.
    pub fn list(&self) -> Result<BTreeMap<String, KeyLocation>, KeyStoreError> {
        let location = |noted: &StoredKey| match noted {
            StoredKey::Plain { .. } => KeyLocation::File,
            StoredKey::InKeyring(_) => KeyLocation::Keyring,
        };
        Ok(self.read()?.iter().map(|(name, noted)| (name.clone(), location(noted))).collect())
    }

    /// The key of a provider, if one is stored.
    pub fn get(&self, provider: &str) -> Result<Option<Secret>, KeyStoreError> {
        match self.read()?.get(provider) {
            None => Ok(None),
            Some(StoredKey::Plain { key }) => Ok(Some(Secret::new(key))),
            Some(StoredKey::InKeyring(_)) => {
                let failed =
                    |reason: String| KeyStoreError::Keyring { provider: provider.to_owned(), reason };
                let keyring =
                    self.keyring.as_ref().ok_or_else(|| failed("no keyring was found".to_owned()))?;
                keyring.get(provider).map(Some).map_err(failed)
            }
        }
    }

    /// Stores the key of a provider: in the keyring if it accepts the key, otherwise in the file.
    pub fn set(&self, provider: &str, key: &Secret) -> Result<KeyLocation, KeyStoreError> {
        if !key.is_usable() {
            return Err(KeyStoreError::NotAKey);
        }
        let mut notes = self.read()?;
        // A machine without a keyring session may have the program, but no service that responds to it.
        let taken = self.keyring.as_ref().is_some_and(|keyring| keyring.set(provider, key).is_ok());
        let (noted, location) = if taken {
            (StoredKey::InKeyring("keyring".to_owned()), KeyLocation::Keyring)
        } else {
            (StoredKey::Plain { key: key.reveal().to_owned() }, KeyLocation::File)
        };
        notes.insert(provider.to_owned(), noted);
        self.write(&notes)?;
        Ok(location)
    }

    /// Removes the key of a provider; returns where it was.
    pub fn remove(&self, provider: &str) -> Result<Option<KeyLocation>, KeyStoreError> {
        let mut notes = self.read()?;
        let location = match notes.remove(provider) {
            None => return Ok(None),
            Some(StoredKey::Plain { .. }) => KeyLocation::File,
            Some(StoredKey::InKeyring(_)) => {
                let failed =
                    |reason: String| KeyStoreError::Keyring { provider: provider.to_owned(), reason };
                let keyring =
                    self.keyring.as_ref().ok_or_else(|| failed("no keyring was found".to_owned()))?;
                keyring.remove(provider).map_err(failed)?;
                KeyLocation::Keyring
            }
        };
        self.write(&notes)?;
        Ok(Some(location))
    }

    fn read(&self) -> Result<StoredKeys, KeyStoreError> {
        let failed = |reason: String| KeyStoreError::File { path: self.file.clone(), reason };
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(StoredKeys::new()),
            Err(error) => return Err(failed(error.to_string())),
        };
        // Check the open file, not the path, so that the file cannot be replaced in between.
        let facts = file.metadata().map_err(|error| failed(error.to_string()))?;
        if facts.permissions().mode() & 0o077 != 0 {
            return Err(KeyStoreError::Open { path: self.file.clone() });
        }
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        // Do not show the parser's message: it may quote a key.
        serde_json::from_str(&text).map_err(|error| {
            failed(format!(
                "line {} is not what `retake keys` writes; repair or delete the file",
                error.line()
            ))
        })
    }

    fn write(&self, notes: &StoredKeys) -> Result<(), KeyStoreError> {
        let failed = |error: std::io::Error| KeyStoreError::File {
            path: self.file.clone(),
            reason: error.to_string(),
        };
        let folder = self.file.parent().ok_or(KeyStoreError::NoFolder)?;
        if !folder.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let text = serde_json::to_string_pretty(notes).expect("texts have no form that JSON lacks");
        let temporary = folder.join(format!(".retake-keys.json.{}", std::process::id()));
        let _ = std::fs::remove_file(&temporary);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let written = written.and_then(|()| std::fs::rename(&temporary, &self.file));
        let written = written.and_then(|()| File::open(folder)?.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written.map_err(failed)
    }
}

#[cfg(test)]
mod tests;
