//! A folder as a remote, shared by several machines or processes.
//!
//! An object is a file. It is written to a temporary file, which is synced and then gets its name: by a rename, or by
//! `link`, which fails if the name exists. Then the folder is synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::RemoteError;
use super::objects::{ObjectRemote, ObjectSpace, OpenRemoteError};

/// A remote in a folder.
pub type FolderRemote = ObjectRemote<Folder>;

impl FolderRemote {
    /// Opens a folder that is a remote.
    pub fn in_folder(root: &Path) -> Result<Self, OpenRemoteError> {
        Self::open(Folder { root: root.to_owned() })
    }

    /// Opens a folder, and makes one that is missing or empty a remote.
    pub fn create_in_folder(root: &Path) -> Result<Self, OpenRemoteError> {
        let folder = Folder { root: root.to_owned() };
        create_folders(root).map_err(|error| folder.failed(error))?;
        Self::open_or_create(folder)
    }
}

/// Objects as files of a folder.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The objects below a folder, which has to exist.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn failed(&self, error: io::Error) -> RemoteError {
        let place = self.place();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                RemoteError::Quota { place, reason: error.to_string() }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                RemoteError::Forbidden { place, reason: error.to_string() }
            }
            _ => RemoteError::Unreachable { place, error },
        }
    }

    /// The file of an object, whose folder is created.
    fn file(&self, name: &str) -> io::Result<PathBuf> {
        let file = self.root.join(name);
        let folder = file.parent().unwrap_or(&self.root);
        if !folder.is_dir() {
            create_folders(folder)?;
        }
        Ok(file)
    }
}

impl ObjectSpace for Folder {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, RemoteError> {
        let read = || {
            let mut bytes = Vec::new();
            File::open(self.root.join(name))?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
            io::Result::Ok(bytes)
        };
        match read() {
            Ok(bytes) if bytes.len() as u64 > most => {
                Err(RemoteError::Damaged(format!("{name} is longer than {most} bytes")))
            }
            Ok(bytes) => Ok(Some(bytes)),
            // Without its root, the folder is not mounted, and not empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.root.is_dir() => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        let write = || {
            let file = self.file(name)?;
            write(&file, bytes, |temporary| fs::rename(temporary, &file))
        };
        write().map_err(|error| self.failed(error))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, RemoteError> {
        let create = || {
            let file = self.file(name)?;
            write(&file, bytes, |temporary| fs::hard_link(temporary, &file))
        };
        match create() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn list(&self, parts: &str) -> Result<Vec<String>, RemoteError> {
        let list = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(self.root.join(parts))? {
                let name = entry?.file_name().into_string();
                names.extend(name.ok().filter(|name| !name.starts_with('.')));
            }
            names.sort();
            io::Result::Ok(names)
        };
        match list() {
            Ok(names) => Ok(names),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.root.is_dir() => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), RemoteError> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Writes a file under a new name, all of it or nothing.
fn write(to: &Path, bytes: &[u8], publish: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut unique = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut unique)?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    // The process id is not unique among machines.
    let name = format!(".new-{:016x}-{}-{number}", u64::from_le_bytes(unique), std::process::id());
    let temporary = folder.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let published = written.and_then(|()| publish(&temporary));
    let _ = fs::remove_file(&temporary);
    published?;
    File::open(folder)?.sync_all()
}

/// Creates a folder and those above it, each durable: a power cut must not remove a folder with a synced bundle.
fn create_folders(folder: &Path) -> io::Result<()> {
    let Some(parent) = folder.parent() else { return Ok(()) };
    if !parent.is_dir() {
        create_folders(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(parent)?.sync_all(),
    }
}
