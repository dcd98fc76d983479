//! Making files durable that a program wrote and did not sync, before an operation that names them is acknowledged.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use retake_model::path::{FileName, TreePath};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::apply::OpenRoot;
use crate::apply::walk::Walker;

/// Up to so many paths are synced one by one; beyond, the whole file system is, once.
const FEW: usize = 8;

/// Makes these paths durable: the content of files, and the names in their folders. A path that is gone or cannot be opened
/// is passed over: whoever changed it since did so after it was captured.
pub fn sync_paths(root: &OpenRoot, paths: &[TreePath]) -> io::Result<()> {
    if paths.len() > FEW {
        return Ok(rustix::fs::syncfs(root.as_fd())?);
    }
    let mut walker = Walker::new(root.as_fd());
    for path in paths {
        let synced = walker.folder(path.parents()).and_then(|folder| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(folder, path.name().bytes(), flags, Mode::empty())?;
            rustix::fs::fsync(file)
        });
        pass_over(synced)?;
    }
    let folders: BTreeSet<&[FileName]> = paths
        .iter()
        // A new folder is a name in the one above it.
        .flat_map(|path| (0..path.names().len()).map(|depth| &path.names()[..depth]))
        .collect();
    for names in folders {
        // The root itself is open, and may be so by a path only.
        let synced = walker.folder(names).and_then(|folder| match rustix::fs::fsync(folder) {
            Err(Errno::BADF) => rustix::fs::syncfs(root.as_fd()),
            other => other,
        });
        pass_over(synced)?;
    }
    Ok(())
}

fn pass_over(synced: Result<(), Errno>) -> io::Result<()> {
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
