//! The remotes of a store, and what this machine knows of them.
//!
//! ```text
//!   <store>/sync/remotes.json           names and addresses
//!   <store>/sync/projects.json          how other machines recognize the projects of this one
//!   <store>/sync/<name>/state.json      the cursor of its news, and its last failure
//!   <store>/sync/<name>/threads/        links, one file for each thread
//!   <store>/sync/<name>/lock            the process that synchronizes now
//!   <store>/sync/<name>/watching        the process that waits for changes
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::links::{Links, Pending};
use crate::projects::ProjectTable;

/// Where a remote is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A folder: `file:///path`.
    Folder(PathBuf),
    /// A bucket: `s3://bucket/prefix`.
    Bucket {
        /// Its name.
        bucket: String,
        /// The first parts of the names of its objects, without slashes at the ends.
        prefix: String,
    },
    /// A hub: `https://host`, or `http://` on this machine.
    Hub(String),
}

/// Text that is not the address of a remote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Its form is none of the known ones.
    #[error("{0:?} is no address of a remote; use file:///PATH, s3://BUCKET/PREFIX or https://HUB")]
    Unknown(String),
    /// A folder without its full path would be another one in every folder.
    #[error("{0:?} must be an absolute path: file:///PATH")]
    Relative(String),
    /// Anybody on the way could read the log.
    #[error("{0:?} is not encrypted; use https:// (http:// is for this machine only)")]
    Unencrypted(String),
    /// Credentials in an address are shown in lists and messages.
    #[error("an address must not contain credentials; `retake remote login` stores them")]
    Credentials,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let unknown = || AddressError::Unknown(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        if rest.is_empty() || text.chars().any(char::is_control) {
            return Err(unknown());
        }
        let host = rest.split('/').next().unwrap_or_default();
        match scheme {
            "file" if rest.starts_with('/') => Ok(Self::Folder(PathBuf::from(rest))),
            "file" => Err(AddressError::Relative(text.to_owned())),
            _ if host.contains('@') => Err(AddressError::Credentials),
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                let prefix = prefix.trim_matches('/').to_owned();
                let is_name = |name: &str| {
                    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                };
                let good = !bucket.is_empty()
                    && is_name(bucket)
                    && prefix.split('/').all(|part| is_name(part) && part != "." && part != "..");
                if good { Ok(Self::Bucket { bucket: bucket.to_owned(), prefix }) } else { Err(unknown()) }
            }
            "https" => Ok(Self::Hub(text.trim_end_matches('/').to_owned())),
            "http" => {
                let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
                match name {
                    "localhost" | "127.0.0.1" | "[::1]" => {
                        Ok(Self::Hub(text.trim_end_matches('/').to_owned()))
                    }
                    _ => Err(AddressError::Unencrypted(text.to_owned())),
                }
            }
            _ => Err(unknown()),
        }
    }
}

/// Whether the name of a host is this machine, so that nobody on the way can read along.
pub(crate) fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// A remote of this store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteConfig {
    /// Its name on this machine.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Whether `serve` and commands synchronize by themselves.
    pub automatic: bool,
    /// The server of a bucket; Amazon's own without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region of a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// Why the remotes could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// There is no such remote.
    #[error("there is no remote {0:?}; `retake remote list` shows all remotes")]
    NoSuchRemote(String),
    /// The name is used.
    #[error("there already is a remote {0:?}; `retake remote remove {0}` removes it from this machine")]
    Exists(String),
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The name cannot be used.
    #[error("{0:?} is no name of a remote: use letters, digits, - and _")]
    Name(String),
}

/// What is remembered of a remote as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteState {
    /// The position in its news.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Its last failure.
    #[serde(default)]
    pub pending: Option<Pending>,
    /// The last exchange without failure, in milliseconds since 1970.
    #[serde(default)]
    pub synced_at: Option<i64>,
}

/// The remotes of a store.
#[derive(Clone, Debug)]
pub struct Remotes {
    folder: PathBuf,
}

/// Held while a process synchronizes with a remote. The system releases it when the process dies.
#[derive(Debug)]
pub struct SyncLock {
    _file: File,
}

impl Remotes {
    /// The remotes of the store in a folder.
    pub fn of_store(store: &Path) -> Self {
        Self { folder: store.join("sync") }
    }

    /// All remotes, by name.
    pub fn list(&self) -> Result<Vec<RemoteConfig>, ConfigError> {
        let mut list: Vec<RemoteConfig> = self.read("remotes.json")?.unwrap_or_default();
        list.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(list)
    }

    /// A remote by its name.
    pub fn get(&self, name: &str) -> Result<RemoteConfig, ConfigError> {
        let found = self.list()?.into_iter().find(|remote| remote.name == name);
        found.ok_or_else(|| ConfigError::NoSuchRemote(name.to_owned()))
    }

    /// Whether a remote can be added.
    pub fn check_new(&self, remote: &RemoteConfig) -> Result<(), ConfigError> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if remote.name.is_empty() || remote.name.len() > 64 || !remote.name.bytes().all(is_part) {
            return Err(ConfigError::Name(remote.name.clone()));
        }
        remote.url.parse::<Address>()?;
        if self.list()?.iter().any(|known| known.name == remote.name) {
            return Err(ConfigError::Exists(remote.name.clone()));
        }
        Ok(())
    }

    /// Adds a remote.
    pub fn add(&self, remote: RemoteConfig) -> Result<(), ConfigError> {
        self.check_new(&remote)?;
        let mut list = self.list()?;
        list.push(remote);
        self.write("remotes.json", &list)
    }

    /// Removes a remote from this machine, with what is known of it. Nothing changes on the remote.
    pub fn remove(&self, name: &str) -> Result<RemoteConfig, ConfigError> {
        let removed = self.get(name)?;
        let mut list = self.list()?;
        list.retain(|remote| remote.name != name);
        self.write("remotes.json", &list)?;
        match fs::remove_dir_all(self.folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(name, error)),
            _ => Ok(removed),
        }
    }

    /// What is known of the threads on a remote.
    pub fn links(&self, name: &str) -> Links {
        Links::at(&self.folder.join(name).join("threads"))
    }

    /// What is remembered of a remote.
    pub fn state(&self, name: &str) -> RemoteState {
        // Nothing in it is needed to be right.
        self.read(&format!("{name}/state.json")).ok().flatten().unwrap_or_default()
    }

    /// Replaces what is remembered of a remote.
    pub fn put_state(&self, name: &str, state: &RemoteState) -> Result<(), ConfigError> {
        self.write(&format!("{name}/state.json"), state)
    }

    /// How other machines recognize the projects of this one.
    pub fn projects(&self) -> Result<ProjectTable, ConfigError> {
        Ok(self.read("projects.json")?.unwrap_or_default())
    }

    /// Replaces that table.
    pub fn put_projects(&self, projects: &ProjectTable) -> Result<(), ConfigError> {
        self.write("projects.json", projects)
    }

    /// Locks a remote for this process; `None` if another process synchronizes with it.
    pub fn try_lock(&self, name: &str) -> Result<Option<SyncLock>, ConfigError> {
        self.try_lock_file(name, "lock")
    }

    /// Locks the wait for changes, apart from the exchanges; `None` if another process waits.
    pub fn try_watch(&self, name: &str) -> Result<Option<SyncLock>, ConfigError> {
        self.try_lock_file(name, "watching")
    }

    fn try_lock_file(&self, name: &str, file: &str) -> Result<Option<SyncLock>, ConfigError> {
        let file = self.lock_file(name, file)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(SyncLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.failed(name, error)),
        }
    }

    /// Locks a remote, after the process that synchronizes with it now.
    pub fn lock(&self, name: &str) -> Result<SyncLock, ConfigError> {
        let file = self.lock_file(name, "lock")?;
        file.lock().map_err(|error| self.failed(name, error))?;
        Ok(SyncLock { _file: file })
    }

    fn lock_file(&self, name: &str, file: &str) -> Result<File, ConfigError> {
        let path = self.folder.join(name).join(file);
        let open = || {
            create_folder(&self.folder.join(name))?;
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)
        };
        open().map_err(|error| ConfigError::File { path: path.clone(), error })
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        let text = match fs::read(self.folder.join(name)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(name, error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| self.failed(name, error.into()))
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), ConfigError> {
        let text = serde_json::to_vec_pretty(value).map_err(|error| self.failed(name, error.into()))?;
        write_file(&self.folder.join(name), &text).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> ConfigError {
        ConfigError::File { path: self.folder.join(name), error }
    }
}

/// Replaces a file that only its owner can read, all of it or nothing.
pub(crate) fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    create_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}-{}-{:?}", std::process::id(), std::thread::current().id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_folders_buckets_and_hubs() {
        let bucket =
            |bucket: &str, prefix: &str| Address::Bucket { bucket: bucket.into(), prefix: prefix.into() };
        for (text, expected) in [
            ("file:///a/b", Some(Address::Folder("/a/b".into()))),
            ("s3://bucket", Some(bucket("bucket", ""))),
            ("s3://bucket/a/b/", Some(bucket("bucket", "a/b"))),
            ("https://hub.example.org/", Some(Address::Hub("https://hub.example.org".into()))),
            ("http://127.0.0.1:8080", Some(Address::Hub("http://127.0.0.1:8080".into()))),
            ("http://hub.example.org", None),
            ("http://localhost.example.org", None),
            ("https://user:secret@hub.example.org", None),
            ("s3://key:secret@bucket", None),
            ("s3://bucket/a/../b", None),
            ("s3://bucket/a b", None),
            ("file://a", None),
            ("/a/b", None),
            ("ftp://a", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }
}
