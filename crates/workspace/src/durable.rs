//! Syncs files that a program wrote without syncing, before an operation that names them is acknowledged.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use retake_model::path::{FileName, TreePath};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::apply::OpenRoot;
use crate::apply::walk::Walker;

/// Up to this number of paths, each is synced; above it, the whole file system is synced once.
const FEW_FILES: usize = 8;

/// Makes paths durable: the content of files and the names in their folders. Skips paths that are missing or cannot be
/// opened, since they changed after the capture.
pub fn sync_paths(root: &OpenRoot, paths: &[TreePath]) -> io::Result<()> {
    if paths.len() > FEW_FILES {
        return Ok(rustix::fs::syncfs(root.as_fd())?);
    }
    let mut walker = Walker::new(root.as_fd());
    for path in paths {
        let synced = walker.folder(path.parents()).and_then(|folder| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(folder, path.name().bytes(), flags, Mode::empty())?;
            rustix::fs::fsync(file)
        });
        ignore_missing(synced)?;
    }
    let folders: BTreeSet<&[FileName]> = paths
        .iter()
        // A new folder is a name in its parent.
        .flat_map(|path| (0..path.names().len()).map(|depth| &path.names()[..depth]))
        .collect();
    for names in folders {
        // The root is already open, possibly by path only.
        let synced = walker.folder(names).and_then(|folder| match rustix::fs::fsync(folder) {
            Err(Errno::BADF) => rustix::fs::syncfs(root.as_fd()),
            other => other,
        });
        ignore_missing(synced)?;
    }
    Ok(())
}

fn ignore_missing(synced: Result<(), Errno>) -> io::Result<()> {
    match synced {
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::ACCESS
            | Errno::PERM
            | Errno::NXIO
            | Errno::INVAL
            | Errno::ISDIR,
        ) => Ok(()),
        other => Ok(other?),
    }
}
