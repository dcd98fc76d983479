//! Which folder on the disk is the one that a take was given.
//!
//! A path is no identity: the folder may have been moved away and another made in its place, or a link put there. The
//! store holds device, inode and birth time of the folder that was filled, and the folder carries a mark with its
//! id where the file system takes one. All that is known must agree.

use std::path::{Path, PathBuf};

use retake_model::id::FolderId;
use retake_model::intent::FolderIdentity;
use retake_workspace::folder::{self, Identity};

use super::super::FileError;
use super::ApartFolder;

/// Where a take's own folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// At its path.
    There,
    /// Under another name beside its path.
    Moved(PathBuf),
    /// Another folder or a link is at its path, and it is not beside it.
    Replaced,
    /// Nothing is at its path, and it is not beside it.
    Gone,
}

/// Marks a folder and says which it is from now on.
pub(in super::super) fn identify(path: &Path, id: FolderId) -> std::io::Result<FolderIdentity> {
    let Identity { device, inode, born } = Identity::of(path)?;
    let marked = folder::mark_worktree(path, id);
    Ok(FolderIdentity { device, inode, born, marked })
}

/// Whether the folder at a path is the recorded one. `here` says whether that is the recorded path.
pub(in super::super) fn is_at(known: &FolderIdentity, id: FolderId, path: &Path, here: bool) -> bool {
    is_same_folder(known, path, here) && (!known.marked || folder::worktree_mark(path) == Some(id))
}

/// The same but for the mark.
pub(in super::super) fn is_same_folder(known: &FolderIdentity, path: &Path, here: bool) -> bool {
    let Ok(found) = Identity::of(path) else { return false };
    let same_birth = known.born.is_none() || found.born.is_none() || known.born == found.born;
    // Device numbers may be given out anew at a restart; at the recorded path the rest suffices.
    let same_device = known.device == found.device || (here && known.born.is_some() && found.born.is_some());
    known.inode == found.inode && same_birth && same_device
}

impl ApartFolder {
    /// Whether the folder at a path, without links, is the one that the take was given.
    pub(super) fn is(&self, path: &Path) -> bool {
        match &self.identity {
            Some(known) => is_at(known, self.id, path, self.path == path),
            // Recorded by an older version, which knew the path alone.
            None => self.path == path && path.symlink_metadata().is_ok_and(|found| found.is_dir()),
        }
    }

    /// Where the folder is.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        let real = self.path.canonicalize().is_ok_and(|real| real == self.path);
        if real && self.is(&self.path) {
            return Whereabouts::There;
        }
        if let Some(FolderIdentity { device, inode, born, .. }) = self.identity {
            let identity = Identity { device, inode, born };
            let beside = folder::renamed_beside(&self.path, &identity);
            if let Some(beside) = beside.filter(|beside| self.is(beside)) {
                return Whereabouts::Moved(beside);
            }
        }
        if self.path.symlink_metadata().is_ok() { Whereabouts::Replaced } else { Whereabouts::Gone }
    }

    /// The folder with the path that it has now: one that was renamed is still the take's.
    pub(in super::super) fn at_present(&self) -> Result<Self, FileError> {
        match self.whereabouts() {
            Whereabouts::There => Ok(self.clone()),
            Whereabouts::Moved(path) => Ok(Self { path, ..self.clone() }),
            Whereabouts::Replaced | Whereabouts::Gone => Err(FileError::WorktreeReplaced(self.path.clone())),
        }
    }

    /// Whether the folder is gone, or another is in its place, so that it can only be forgotten. One that was moved is
    /// refused.
    pub(in super::super) fn is_gone(&self) -> Result<bool, FileError> {
        match self.whereabouts() {
            Whereabouts::There => Ok(false),
            Whereabouts::Moved(to) => Err(FileError::WorktreeMoved { from: self.path.clone(), to }),
            Whereabouts::Replaced | Whereabouts::Gone => Ok(true),
        }
    }

    /// Whether the folder is where it was, and still the one that the take was given.
    pub fn is_there(&self) -> bool {
        self.whereabouts() == Whereabouts::There
    }
}
