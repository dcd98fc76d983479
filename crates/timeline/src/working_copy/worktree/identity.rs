//! Identifies the folder of a worktree on disk.
//!
//! A path is not enough: the folder may have been moved, and another folder or a link may have taken its path. The
//! store has device, inode and birth time, and the folder has a mark with its id if the file system supports it. All
//! known facts must agree.

use std::path::{Path, PathBuf};

use retake_model::id::FolderId;
use retake_model::intent::FolderIdentity;
use retake_workspace::folder::{self, Identity};

use super::super::FileError;
use super::Worktree;

/// Location of a worktree's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FolderLocation {
    /// At its path.
    AtPath,
    /// Renamed within its parent.
    Moved(PathBuf),
    /// Another folder or a link is at its path, and it was not renamed within its parent.
    Replaced,
    /// Nothing is at its path, and it was not renamed within its parent.
    Missing,
}

/// Marks a folder and returns its identity.
pub(in super::super) fn identify(path: &Path, id: FolderId) -> std::io::Result<FolderIdentity> {
    let Identity { device, inode, born } = Identity::of(path)?;
    let marked = folder::mark_worktree(path, id);
    Ok(FolderIdentity { device, inode, born, marked })
}

/// Returns whether the folder at a path is the recorded one. `here` states whether that is the recorded path.
pub(in super::super) fn is_at(known: &FolderIdentity, id: FolderId, path: &Path, here: bool) -> bool {
    is_same_folder(known, path, here) && (!known.marked || folder::worktree_mark(path) == Some(id))
}

/// Like `is_at`, without the mark.
pub(in super::super) fn is_same_folder(known: &FolderIdentity, path: &Path, here: bool) -> bool {
    let Ok(found) = Identity::of(path) else { return false };
    let same_birth = known.born.is_none() || found.born.is_none() || known.born == found.born;
    // Device numbers may change at a restart; at the recorded path the rest suffices.
    let same_device = known.device == found.device || (here && known.born.is_some() && found.born.is_some());
    known.inode == found.inode && same_birth && same_device
}

impl Worktree {
    /// Returns whether the folder at a path, without links, is this worktree.
    pub(super) fn contains(&self, path: &Path) -> bool {
        match &self.identity {
            Some(known) => is_at(known, self.id, path, self.path == path),
            // An older version recorded only the path.
            None => self.path == path && path.symlink_metadata().is_ok_and(|found| found.is_dir()),
        }
    }

    /// Locates the folder.
    pub(super) fn locate(&self) -> FolderLocation {
        let real = self.path.canonicalize().is_ok_and(|real| real == self.path);
        if real && self.contains(&self.path) {
            return FolderLocation::AtPath;
        }
        if let Some(FolderIdentity { device, inode, born, .. }) = self.identity {
            let identity = Identity { device, inode, born };
            let beside = folder::find_renamed_sibling(&self.path, &identity);
            if let Some(beside) = beside.filter(|beside| self.contains(beside)) {
                return FolderLocation::Moved(beside);
            }
        }
        if self.path.symlink_metadata().is_ok() { FolderLocation::Replaced } else { FolderLocation::Missing }
    }

    /// The worktree with its current path, which changes when the folder is renamed.
    pub(in super::super) fn at_present(&self) -> Result<Self, FileError> {
        match self.locate() {
            FolderLocation::AtPath => Ok(self.clone()),
            FolderLocation::Moved(path) => Ok(Self { path, ..self.clone() }),
            FolderLocation::Replaced | FolderLocation::Missing => {
                Err(FileError::WorktreeReplaced(self.path.clone()))
            }
        }
    }

    /// Returns whether the folder is missing or replaced, so that it can only be forgotten. Fails if it was moved.
    pub(in super::super) fn is_gone(&self) -> Result<bool, FileError> {
        match self.locate() {
            FolderLocation::AtPath => Ok(false),
            FolderLocation::Moved(to) => Err(FileError::WorktreeMoved { from: self.path.clone(), to }),
            FolderLocation::Replaced | FolderLocation::Missing => Ok(true),
        }
    }

    /// Returns whether the folder is at its path.
    pub fn exists(&self) -> bool {
        self.locate() == FolderLocation::AtPath
    }
}
