//! The files of a store, and that nobody but their owner can read them.
//!
//! Whatever the umask, folders are 0700 and files 0600. A file is created with its final mode; one that is
//! found wider is narrowed before it is used.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Modes that the files of a store have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions;

impl Permissions {
    /// Of folders.
    pub const FOLDER: u32 = 0o700;
    /// Of files.
    pub const FILE: u32 = 0o600;
}

pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("retake.db")
}

pub(crate) fn search(folder: &Path) -> PathBuf {
    folder.join("search.db")
}

/// What agents do, and what was said to models.
pub(crate) fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger.db")
}

pub(crate) fn lock(folder: &Path) -> PathBuf {
    folder.join("writer.lock")
}

/// The mark that something is being destroyed.
pub(crate) fn erasing(folder: &Path) -> PathBuf {
    folder.join("erasing")
}

/// What is remembered of folders that files are kept of: locks, and what files looked like.
pub(crate) fn folders(folder: &Path) -> PathBuf {
    folder.join("folders")
}

pub(crate) fn backups(folder: &Path) -> PathBuf {
    folder.join("backups")
}

/// The first of a row of names in a folder that nothing has yet.
pub(crate) fn free_name(folder: &Path, named: impl Fn(u64) -> String) -> PathBuf {
    let mut number = 1;
    loop {
        let path = folder.join(named(number));
        if fs::symlink_metadata(&path).is_err() {
            return path;
        }
        number += 1;
    }
}

/// Makes a private folder, with its parents, or narrows the one that is there.
pub(crate) fn private_folder(path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::File { path: path.to_owned(), error };
    if fs::metadata(path).is_ok() {
        narrow(path, Permissions::FOLDER).map_err(fail)
    } else {
        DirBuilder::new().recursive(true).mode(Permissions::FOLDER).create(path).map_err(fail)?;
        narrow(path, Permissions::FOLDER).map_err(fail)?;
        // The new folder must still be there after a power cut, or all that is in it is gone.
        path.ancestors().skip(1).take(2).try_for_each(sync_folder).map_err(fail)
    }
}

/// Makes a private file, or narrows the one that is there.
///
/// A file that exists is not opened: closing it again would drop the locks that SQLite holds on it for
/// another connection of this process.
pub(crate) fn private_file(path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::File { path: path.to_owned(), error };
    match OpenOptions::new().write(true).create_new(true).mode(Permissions::FILE).open(path) {
        Ok(_) => {
            // A umask can only take bits away, and an owner without access could not go on.
            narrow(path, Permissions::FILE).map_err(fail)?;
            path.parent().map_or(Ok(()), sync_folder).map_err(fail)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            narrow(path, Permissions::FILE).map_err(fail)
        }
        Err(error) => Err(fail(error)),
    }
}

/// Opens a private file that no database library locks, making it if need be.
pub(crate) fn open_private(path: &Path) -> Result<File, StoreError> {
    private_file(path)?;
    let open = OpenOptions::new().read(true).write(true).open(path);
    open.map_err(|error| StoreError::File { path: path.to_owned(), error })
}

pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

fn narrow(path: &Path, mode: u32) -> io::Result<()> {
    let found = fs::metadata(path)?.permissions().mode() & 0o777;
    if found == mode { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}
