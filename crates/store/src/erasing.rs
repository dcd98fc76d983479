//! Destroying to the end: what a purge or a redaction does after its transaction, also when it was killed.
//!
//! ```text
//!   "erasing" durable ─► transaction ─► packs, pages, log ─► search index ─► "erasing" gone
//!      locked              └── a crash from here on: the next command that changes something does the rest
//! ```
//!
//! The mark is locked while a process is at it, so that one without a lock was left by a crash.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::location::{erasing, open_private, search};
use crate::maintenance::LogState;
use crate::{SearchError, SearchIndex, Store, StoreError};

/// The mark that something is being destroyed.
pub(crate) struct Erasing {
    // Locked until it is closed.
    file: File,
    path: PathBuf,
}

impl Store {
    /// Marks that something is about to be destroyed; waits while another process is at it.
    pub(crate) fn begin_erasing(&self) -> Result<Erasing, StoreError> {
        let path = erasing(&self.folder);
        loop {
            let file = open_private(&path)?;
            file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
            let erasing = Erasing { file, path: path.clone() };
            if erasing.is_there() {
                return Ok(erasing);
            }
        }
    }

    /// Finishes a purge or a redaction that was killed after it had begun to destroy; says whether there was one. One
    /// that another process is at is left to it.
    pub fn finish_erasing(&self) -> Result<bool, SearchError> {
        let path = erasing(&self.folder);
        if !path.exists() {
            return Ok(false);
        }
        let file = open_private(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(StoreError::File { path, error }.into()),
        }
        let erasing = Erasing { file, path };
        if !erasing.is_there() {
            return Ok(false);
        }
        self.alone(|alone| {
            alone.sweep_packs(i64::MIN)?;
            alone.give_back_pages()?;
            alone.empty_log()
        })?;
        self.erase_words(erasing)?;
        Ok(true)
    }

    /// Takes the words of what is gone out of the search index, if there is one: the last step.
    pub(crate) fn erase_words(&self, erasing: Erasing) -> Result<LogState, SearchError> {
        if search(&self.folder).exists() {
            let index = SearchIndex::open(&self.folder)?;
            index.catch_up(&self.read()?.queries(), &mut |_| ())?;
            if index.has_leftovers()? {
                // Another process reads them. The mark stays, so that the next command tries again.
                return Ok(LogState::HeldByReader);
            }
        }
        erasing.end()?;
        Ok(LogState::Emptied)
    }
}

impl Erasing {
    /// Whether the file that was locked is still the mark: another process may have removed it before.
    fn is_there(&self) -> bool {
        let inode = |found: std::io::Result<std::fs::Metadata>| found.ok().map(|found| found.ino());
        inode(self.file.metadata()) == inode(std::fs::symlink_metadata(&self.path))
    }

    fn end(self) -> Result<(), StoreError> {
        std::fs::remove_file(&self.path).map_err(|error| StoreError::File { path: self.path, error })
    }
}
