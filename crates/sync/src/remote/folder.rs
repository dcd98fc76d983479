//! A folder as a remote, shared by several machines or processes.
//!
//! An object is a file. It is written to a temporary file, which is synced and then gets its name: by a rename, or by
//! `link`, which fails if the name exists. Then the folder is synced.
//!
//! Others can write to a shared folder. Below its root no symlink is followed, so that nothing outside is read, written
//! or removed, and only regular files are read: a pipe would block.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fsync, linkat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

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
        create_folders(root).map_err(|error| folder.failed("", error))?;
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

    fn failed(&self, name: &str, error: io::Error) -> RemoteError {
        let place = self.place();
        if matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NOTDIR)) {
            let message = format!("{place}/{name} is a symlink, or neither a file nor a folder; remove it");
            return RemoteError::Damaged(message);
        }
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

    /// The root, which may be reached through symlinks: the user named it.
    fn root(&self) -> Result<OwnedFd, RemoteError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.root, flags, Mode::empty());
        // Without its root, the folder is not mounted, and not empty.
        opened.map_err(|error| self.failed("", error.into()))
    }

    /// Does something in the folder of an object. `None` if the folder or the object does not exist.
    fn within<T>(
        &self,
        name: &str,
        missing: Missing,
        work: impl Fn(&OwnedFd, &str) -> io::Result<T>,
    ) -> Result<Option<T>, RemoteError> {
        let root = self.root()?;
        let (parts, last) = name.rsplit_once('/').unwrap_or(("", name));
        match open_below(root, parts, missing).and_then(|folder| work(&folder, last)) {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// Writes an object; false if `publish` found its name in use.
    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        publish: impl Fn(&OwnedFd, &str, &str) -> Result<(), Errno>,
    ) -> Result<bool, RemoteError> {
        let written = self.within(name, Missing::Create, |folder, name| {
            match write(folder, bytes, |temporary| publish(folder, temporary, name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                written => written.map(|()| true),
            }
        })?;
        // Somebody removed the folder meanwhile.
        written.ok_or_else(|| self.failed(name, io::ErrorKind::NotFound.into()))
    }
}

/// What to do about a folder that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Fail,
}

impl ObjectSpace for Folder {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, RemoteError> {
        let found = self.within(name, Missing::Fail, |folder, name| {
            let flags =
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = File::from(openat(folder, name, flags, Mode::empty())?);
            if !file.metadata()?.is_file() {
                return Err(Errno::LOOP.into());
            }
            let mut bytes = Vec::new();
            file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(bytes)
        })?;
        match found {
            Some(bytes) if bytes.len() as u64 > most => {
                Err(RemoteError::Damaged(format!("{name} is longer than {most} bytes")))
            }
            found => Ok(found),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        self.write(name, bytes, |folder, temporary, name| renameat(folder, temporary, folder, name)).map(drop)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, RemoteError> {
        self.write(name, bytes, |folder, temporary, name| {
            linkat(folder, temporary, folder, name, AtFlags::empty())
        })
    }

    fn list(&self, parts: &str) -> Result<Vec<String>, RemoteError> {
        let names = self.within(&format!("{parts}/"), Missing::Fail, |folder, _| {
            let mut names = Vec::new();
            for entry in Dir::read_from(folder)? {
                let name = entry?.file_name().to_str().map(str::to_owned);
                names.extend(name.ok().filter(|name| !name.starts_with('.')));
            }
            names.sort();
            Ok(names)
        })?;
        Ok(names.unwrap_or_default())
    }

    fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let remove = |folder: &OwnedFd, name: &str| Ok(unlinkat(folder, name, AtFlags::empty())?);
        self.within(name, Missing::Fail, remove).map(drop)
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Opens the folder of these parts below another one, without following symlinks. A new folder is durable: a power cut
/// must not remove one with a synced bundle.
fn open_below(root: OwnedFd, parts: &str, missing: Missing) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = root;
    for part in parts.split('/').filter(|part| !part.is_empty()) {
        let mut opened = openat(&folder, part, flags, Mode::empty());
        if opened.as_ref().err() == Some(&Errno::NOENT) && missing == Missing::Create {
            match mkdirat(&folder, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => fsync(&folder)?,
                Err(error) => return Err(error.into()),
            }
            opened = openat(&folder, part, flags, Mode::empty());
        }
        folder = opened?;
    }
    Ok(folder)
}

/// Writes a file under a new name, all of it or nothing.
fn write(folder: &OwnedFd, bytes: &[u8], publish: impl Fn(&str) -> Result<(), Errno>) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut unique = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut unique)?;
    // The process id is not unique among machines.
    let temporary = format!(".new-{:016x}-{}-{number}", u64::from_le_bytes(unique), std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let published = written.and_then(|()| Ok(publish(&temporary)?));
    let _ = unlinkat(folder, &temporary, AtFlags::empty());
    published?;
    Ok(fsync(folder)?)
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
