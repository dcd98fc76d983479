//! Renames that cannot replace anything by accident, and what stands in for them where they are missing.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

/// Whether the file system knows how to swap two names, and how to refuse to replace one. Taken for granted
/// until it says that it does not.
#[derive(Debug)]
pub(super) struct Renames {
    known: AtomicBool,
}

/// A name in a folder.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
}

/// What came of an attempt to swap.
pub(super) enum Swap {
    Done,
    /// The file system cannot do it.
    Unknown,
}

impl Default for Renames {
    fn default() -> Self {
        Self { known: AtomicBool::new(true) }
    }
}

impl Renames {
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { known: AtomicBool::new(false) }
    }

    /// Swaps what stands under two names.
    pub(super) fn swap(&self, one: Place<'_>, other: Place<'_>) -> Result<Swap, Errno> {
        if !self.known.load(Ordering::Relaxed) {
            return Ok(Swap::Unknown);
        }
        match rename_with(one, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(Swap::Done),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.known.store(false, Ordering::Relaxed);
                Ok(Swap::Unknown)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Moves something to a name that must be free; fails with `EXIST` if it is not.
    pub(super) fn put(&self, from: Place<'_>, to: Place<'_>) -> Result<(), Errno> {
        if self.known.load(Ordering::Relaxed) {
            match rename_with(from, to, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    self.known.store(false, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        // A second name is refused where there is one already; folders and some file systems have no second
        // names, and there is only the look before the move.
        match rustix::fs::linkat(from.folder, from.name, to.folder, to.name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(from.folder, from.name, AtFlags::empty()),
            Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => {
                match rustix::fs::statat(to.folder, to.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(Errno::NOENT) => rustix::fs::renameat(from.folder, from.name, to.folder, to.name),
                    Err(errno) => Err(errno),
                }
            }
            Err(errno) => Err(errno),
        }
    }
}

fn rename_with(from: Place<'_>, to: Place<'_>, flags: RenameFlags) -> Result<(), Errno> {
    rustix::fs::renameat_with(from.folder, from.name, to.folder, to.name, flags)
}
