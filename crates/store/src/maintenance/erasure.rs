//! The part of a purge or redaction that follows its transaction, and its recovery after a crash.
//!
//! ```text
//!   marker durable ─► transaction ─► packs, pages, WAL ─► search index ─► marker removed
//!      locked           └── after a crash from here on, the next command that writes completes the rest
//! ```
//!
//! A running erasure locks the marker, so an unlocked marker is left over from a crash.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::location::{erasure_marker, open_private, search};
use crate::maintenance::exclusive::WalState;
use crate::{SearchError, SearchIndex, Store, StoreError};

/// Marks that an erasure is in progress.
pub(crate) struct ErasureMarker {
    // The lock is released when the file is closed.
    file: File,
    path: PathBuf,
}

impl Store {
    /// Creates and locks the marker; waits while another process erases.
    pub(crate) fn begin_erasure(&self) -> Result<ErasureMarker, StoreError> {
        let path = erasure_marker(&self.folder);
        loop {
            let file = open_private(&path)?;
            file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
            let erasure_marker = ErasureMarker { file, path: path.clone() };
            if erasure_marker.is_current() {
                return Ok(erasure_marker);
            }
        }
    }

    /// Completes a purge or redaction that was interrupted after its transaction; returns whether there was one. An
    /// erasure that another process is running is left alone.
    pub fn finish_erasure(&self) -> Result<bool, SearchError> {
        let path = erasure_marker(&self.folder);
        if !path.exists() {
            return Ok(false);
        }
        let file = open_private(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(StoreError::File { path, error }.into()),
        }
        let erasure_marker = ErasureMarker { file, path };
        if !erasure_marker.is_current() {
            return Ok(false);
        }
        self.with_exclusive_access(|exclusive| {
            exclusive.sweep_packs(i64::MIN)?;
            exclusive.destroy_deleted_rows()
        })?;
        self.erase_from_search_index(erasure_marker)?;
        Ok(true)
    }

    /// Removes purged and redacted words from the search index, if there is one. This is the last step.
    pub(crate) fn erase_from_search_index(
        &self,
        erasure_marker: ErasureMarker,
    ) -> Result<WalState, SearchError> {
        if search(&self.folder).exists() {
            let index = SearchIndex::open(&self.folder)?;
            index.catch_up(&self.read()?.queries(), &mut |_| ())?;
            if index.has_leftovers()? {
                // Another process is reading. The marker stays, so that the next command tries again.
                return Ok(WalState::HeldByReader);
            }
        }
        erasure_marker.end()?;
        Ok(WalState::Emptied)
    }
}

impl ErasureMarker {
    /// Whether the locked file is still the marker: another process may have removed it before we locked it.
    fn is_current(&self) -> bool {
        let inode = |found: std::io::Result<std::fs::Metadata>| found.ok().map(|found| found.ino());
        inode(self.file.metadata()) == inode(std::fs::symlink_metadata(&self.path))
    }

    fn end(self) -> Result<(), StoreError> {
        std::fs::remove_file(&self.path).map_err(|error| StoreError::File { path: self.path, error })
    }
}
