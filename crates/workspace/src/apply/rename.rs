//! Renames that never replace a file by accident, with fallbacks for file systems that lack them.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

/// Whether the file system supports swapping names and refusing to replace one. Assumed until a call fails.
#[derive(Debug)]
pub(super) struct Renames {
    known: AtomicBool,
    /// A name that the system does not let tests rename.
    #[cfg(test)]
    denied: &'static [u8],
}

/// A name in an open folder.
#[derive(Clone, Copy)]
pub(super) struct EntryLocation<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
}

/// Outcome of an attempt to swap.
pub(super) enum SwapOutcome {
    Done,
    /// The file system does not support it.
    Unknown,
}

impl Default for Renames {
    fn default() -> Self {
        Self {
            known: AtomicBool::new(true),
            #[cfg(test)]
            denied: b"",
        }
    }
}

impl Renames {
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { known: AtomicBool::new(false), ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn denying(denied: &'static [u8]) -> Self {
        Self { denied, ..Self::default() }
    }

    /// Swaps two names.
    pub(super) fn swap(
        &self,
        one: EntryLocation<'_>,
        other: EntryLocation<'_>,
    ) -> Result<SwapOutcome, Errno> {
        if !self.known.load(Ordering::Relaxed) {
            return Ok(SwapOutcome::Unknown);
        }
        match rename_with(one, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(SwapOutcome::Done),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.known.store(false, Ordering::Relaxed);
                Ok(SwapOutcome::Unknown)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Renames to a name that must be free; fails with `EXIST` otherwise.
    pub(super) fn put(&self, from: EntryLocation<'_>, to: EntryLocation<'_>) -> Result<(), Errno> {
        #[cfg(test)]
        if from.name == self.denied {
            return Err(Errno::ACCESS);
        }
        if self.known.load(Ordering::Relaxed) {
            match rename_with(from, to, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    self.known.store(false, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        // A hard link fails if the name exists. Folders, and files on some file systems, cannot have one; then only the
        // check before the rename protects the name.
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

fn rename_with(from: EntryLocation<'_>, to: EntryLocation<'_>, flags: RenameFlags) -> Result<(), Errno> {
    rustix::fs::renameat_with(from.folder, from.name, to.folder, to.name, flags)
}
