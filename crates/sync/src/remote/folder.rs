//! A folder as a remote, shared by several machines or processes.
//!
//! ```text
//!   retake-remote.json                       {"format":1}
//!   threads/<thread>/bundles/<hash>          immutable, named by its bytes
//!   threads/<thread>/heads/000000000001      the row of bundles: one file each
//! ```
//!
//! A push writes the bundle to a temporary file, syncs it, renames it to its name, and syncs the folder. Only then it
//! links the head file, complete and synced, under the next number: `link` fails if another machine was first, so that one
//! of them wins. A crash leaves a temporary file or a bundle without a head, which are garbage.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use retake_model::id::ThreadId;
use serde::{Deserialize, Serialize};

use super::{PushOutcome, Remote, RemoteError, RemoteHead};
use crate::bundle::{BundleId, MAX_UNPACKED};

const FORMAT: u64 = 1;
const MARK: &str = "retake-remote.json";
/// A head file is small; a longer one is not one.
const LONGEST_HEAD: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct Mark {
    format: u64,
}

/// Why a folder is not a remote.
#[derive(Debug, thiserror::Error)]
pub enum OpenFolderError {
    /// The folder has other files.
    #[error("{0} is not empty and is no remote; name an empty folder")]
    NotEmpty(PathBuf),
    /// It could not be used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// A folder as a remote.
#[derive(Clone, Debug)]
pub struct FolderRemote {
    root: PathBuf,
}

impl FolderRemote {
    /// Opens a folder, and makes an empty one a remote.
    pub fn open(root: &Path) -> Result<Self, OpenFolderError> {
        let remote = Self { root: root.to_owned() };
        let mark = root.join(MARK);
        match read_bounded(&mark) {
            Ok(text) => {
                let found: Mark = serde_json::from_slice(&text)
                    .map_err(|error| RemoteError::Damaged(format!("{MARK}: {error}")))?;
                if found.format > FORMAT {
                    return Err(RemoteError::Newer { found: found.format }.into());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let at = |error| remote.unreachable(error);
                create_folder(root).map_err(at)?;
                // A folder with threads has lost its mark, or is a copy in progress.
                let mut entries = fs::read_dir(root).map_err(at)?;
                if entries.any(|entry| {
                    entry.is_ok_and(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
                }) {
                    return Err(OpenFolderError::NotEmpty(root.to_owned()));
                }
                let text = serde_json::to_vec(&Mark { format: FORMAT }).unwrap_or_default();
                put(root, &mark, &text).map_err(at)?;
            }
            Err(error) => return Err(remote.unreachable(error).into()),
        }
        Ok(remote)
    }

    fn unreachable(&self, error: io::Error) -> RemoteError {
        RemoteError::Unreachable { place: self.root.display().to_string(), error }
    }

    fn thread_folder(&self, thread: ThreadId) -> PathBuf {
        self.root.join("threads").join(thread.to_string())
    }

    fn read_head(&self, path: &Path, number: u64) -> Result<Option<RemoteHead>, RemoteError> {
        let text = match read_bounded(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unreachable(error)),
        };
        let damaged = |reason: String| RemoteError::Damaged(format!("{}: {reason}", path.display()));
        let head: RemoteHead = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if head.number != number || head.first == 0 || head.first > head.last {
            return Err(damaged("it contradicts itself".to_owned()));
        }
        Ok(Some(head))
    }
}

impl Remote for FolderRemote {
    fn threads(&self) -> Result<Vec<ThreadId>, RemoteError> {
        let entries = match fs::read_dir(self.root.join("threads")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.unreachable(error)),
        };
        let mut threads = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| self.unreachable(error))?.file_name();
            threads.extend(name.to_str().and_then(|name| name.parse::<ThreadId>().ok()));
        }
        threads.sort();
        Ok(threads)
    }

    fn heads(&self, thread: ThreadId, after: u64) -> Result<Vec<RemoteHead>, RemoteError> {
        let folder = self.thread_folder(thread).join("heads");
        let mut heads: Vec<RemoteHead> = Vec::new();
        for number in after + 1.. {
            let Some(head) = self.read_head(&folder.join(head_name(number)), number)? else { break };
            if heads.last().is_some_and(|last| last.last + 1 != head.first) {
                return Err(RemoteError::Damaged(format!("bundle {number} of thread {thread} leaves a gap")));
            }
            heads.push(head);
        }
        Ok(heads)
    }

    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError> {
        let path = self.thread_folder(thread).join("bundles").join(head.bundle.to_string());
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|error| self.unreachable(error))?;
        file.take(MAX_UNPACKED).read_to_end(&mut bytes).map_err(|error| self.unreachable(error))?;
        if BundleId::of(&bytes) != head.bundle {
            return Err(RemoteError::Damaged(format!("bundle {} is damaged", head.bundle)));
        }
        Ok(bytes)
    }

    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError> {
        let folder = self.thread_folder(thread);
        let at = |error| self.unreachable(error);
        let (bundles, heads) = (folder.join("bundles"), folder.join("heads"));
        for folder in [&self.root.join("threads"), &folder, &bundles, &heads] {
            create_folder(folder).map_err(at)?;
        }
        // A head may only follow one that exists, also in a folder that was restored from an older copy.
        if head.number > 1 && !heads.join(head_name(head.number - 1)).exists() {
            return Ok(PushOutcome::Moved);
        }
        put(&bundles, &bundles.join(head.bundle.to_string()), bundle).map_err(at)?;
        let text = serde_json::to_vec(head).map_err(|error| at(error.into()))?;
        let added = put(&heads, &heads.join(head_name(head.number)), &text).map_err(at)?;
        Ok(if added { PushOutcome::Added } else { PushOutcome::Moved })
    }
}

/// Writes a file under a new name, all of it or nothing; returns false if the name exists.
fn put(folder: &Path, to: &Path, bytes: &[u8]) -> io::Result<bool> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut unique = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut unique)?;
    let name = format!(".new-{:016x}-{}-{number}", u64::from_le_bytes(unique), std::process::id());
    let temporary = folder.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, to));
    let _ = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    }
    File::open(folder)?.sync_all()?;
    Ok(true)
}

fn head_name(number: u64) -> String {
    format!("{number:020}")
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_HEAD).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    // A folder that a power cut removes would take a synced bundle with it.
    match folder.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
