//! The files of a store, private to their owner.
//!
//! Whatever the umask, folders have mode 0700 and files 0600. Files are created with their final mode; a wider mode
//! is restricted before use.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// File modes in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions;

impl Permissions {
    pub const FOLDER: u32 = 0o700;
    pub const FILE: u32 = 0o600;
}

pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("retake.db")
}

pub(crate) fn search(folder: &Path) -> PathBuf {
    folder.join("search.db")
}

/// Trace, running turns, browser sessions and idempotency keys.
pub(crate) fn runtime_database(folder: &Path) -> PathBuf {
    folder.join("ledger.db")
}

pub(crate) fn lock(folder: &Path) -> PathBuf {
    folder.join("writer.lock")
}

/// The marker of an erasure in progress.
pub(crate) fn erasure_marker(folder: &Path) -> PathBuf {
    folder.join("erasing")
}

/// Locks and stat caches of captured folders.
pub(crate) fn folders(folder: &Path) -> PathBuf {
    folder.join("folders")
}

pub(crate) fn backups(folder: &Path) -> PathBuf {
    folder.join("backups")
}

/// The first of a sequence of names that does not exist in a folder.
pub(crate) fn first_free_name(folder: &Path, named: impl Fn(u64) -> String) -> PathBuf {
    let mut number = 1;
    loop {
        let path = folder.join(named(number));
        if fs::symlink_metadata(&path).is_err() {
            return path;
        }
        number += 1;
    }
}

/// Creates a private folder with its parents, or restricts the mode of an existing one.
pub(crate) fn private_folder(path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::File { path: path.to_owned(), error };
    if fs::metadata(path).is_ok() {
        restrict_mode(path, Permissions::FOLDER).map_err(fail)
    } else {
        DirBuilder::new().recursive(true).mode(Permissions::FOLDER).create(path).map_err(fail)?;
        restrict_mode(path, Permissions::FOLDER).map_err(fail)?;
        // The new folder must survive a power cut.
        path.ancestors().skip(1).take(2).try_for_each(sync_folder).map_err(fail)
    }
}

/// Creates a private file, or restricts the mode of an existing one.
///
/// An existing file is not opened, because closing it would release the locks that SQLite holds on it for another
/// connection of this process.
pub(crate) fn private_file(path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::File { path: path.to_owned(), error };
    match OpenOptions::new().write(true).create_new(true).mode(Permissions::FILE).open(path) {
        Ok(_) => {
            // A umask may have removed access for the owner.
            restrict_mode(path, Permissions::FILE).map_err(fail)?;
            path.parent().map_or(Ok(()), sync_folder).map_err(fail)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            restrict_mode(path, Permissions::FILE).map_err(fail)
        }
        Err(error) => Err(fail(error)),
    }
}

/// Opens a private file that SQLite does not lock; creates it if it is missing.
pub(crate) fn open_private(path: &Path) -> Result<File, StoreError> {
    private_file(path)?;
    let open = OpenOptions::new().read(true).write(true).open(path);
    open.map_err(|error| StoreError::File { path: path.to_owned(), error })
}

pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

fn restrict_mode(path: &Path, mode: u32) -> io::Result<()> {
    let found = fs::metadata(path)?.permissions().mode() & 0o777;
    if found == mode { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}
