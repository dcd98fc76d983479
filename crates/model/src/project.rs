//! Identifies the project of a folder.
//!
//! A path is a poor identity: folders are renamed, moved to another disk, copied, deleted and created again
//! under the same name. So this module compares the observed identity of a folder ([`Folder`]) with the last
//! recorded one ([`ProjectRecord`]) and with the folder now at the recorded path (`ProjectCandidate`). The
//! caller reads the disk; the decision is pure.
//!
//! Evidence, strongest first. A folder is *proven* to be the recorded one if inode and creation time match
//! (and the device, which is stable enough to compare only if the path differs). It is *alike* if device and
//! inode match and a creation time is missing: inodes are reused, so this alone does not identify a project.
//! The *mark* is an attribute on the folder that names its project; it survives renames and moves, but copies
//! have it too. So the mark alone does not move a project if the file system *contradicts* it: a rename
//! preserves the inode, and a marked folder on the recorded device with another inode or creation time is a
//! copy.
//!
//! ```text
//!   evidence            recorded path   found there now           verdict
//!   ──────────────────────────────────────────────────────────────────────────────────────────
//!   proven              this one        –                         Same
//!   mark                this one        –                         Same      (restored from a backup)
//!                       this one        the recorded folder is beside it, renamed    Copied
//!   proven, or alike    elsewhere       this very folder          Same      (one folder, two paths)
//!     and marked        elsewhere       the recorded folder       Copied    (a snapshot of the file system)
//!                       elsewhere       anything else             Moved
//!   mark                elsewhere       this very folder          Same
//!                       elsewhere       a folder with the mark    Copied    (the original exists)
//!                       elsewhere       nothing, or another       Moved     (to another file system)
//!                                                                 or Copied (contradicted, or the recorded
//!                                                                           folder is beside it, renamed)
//!   alike               this one        –                         Same      (unless the remotes differ)
//!   path, same remote   this one        –                         Same      (cloned again)
//!   path only           this one        –                         Replaced  (new, with a hint)
//!   alike               elsewhere       this very folder          Same
//!   alike, same remote  elsewhere       nothing                   Moved
//!   alike               elsewhere       otherwise                 New       (with a hint)
//!   nothing             –               –                         New
//! ```
//!
//! Rows are tried from the top, each over all candidates, the most recently seen first. In every case the
//! caller records the observed identity and marks the folder; the next folder with the same evidence then
//! finds that the original still exists, and becomes a new project. Therefore two folders never share
//! threads.
//!
//! One case is undecidable: the original was renamed into another folder, and a copy was made on another file
//! system. The copy looks like a move to that file system and is reported as one.

use crate::id::ProjectId;
use crate::time::Timestamp;

/// The observed identity of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its absolute path, without symbolic links.
    pub path: String,
    /// The device that holds it.
    pub device: u64,
    /// Its inode on that device.
    pub inode: u64,
    /// Its creation time in nanoseconds since 1970, if the file system records it.
    pub born: Option<i64>,
    /// The project named by an attribute on the folder.
    pub mark: Option<ProjectId>,
    /// The remote of its git repository, without credentials.
    pub remote: Option<String>,
}

/// The identity of a project's folder when Retake last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRecord {
    /// The project.
    pub id: ProjectId,
    /// Path of the folder.
    pub path: String,
    /// Its device.
    pub device: u64,
    /// Its inode on that device.
    pub inode: u64,
    /// Its creation time in nanoseconds since 1970, if known.
    pub born: Option<i64>,
    /// The remote of its git repository, without credentials.
    pub remote: Option<String>,
    /// Time of the observation.
    pub last_seen: Timestamp,
}

/// A known project and the folder now at its recorded path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectCandidate {
    /// The recorded identity.
    pub record: ProjectRecord,
    /// The folder at the recorded path; `None` if it does not exist or cannot be read.
    pub there: Option<Folder>,
    /// Whether the recorded folder, by device, inode and creation time, now has another name in the same
    /// parent folder.
    pub renamed: bool,
}

/// The decision on the project of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectVerdict<'known> {
    /// The folder belongs to this project.
    Same(ProjectId),
    /// The folder belongs to this project and has moved.
    Moved {
        /// The project, which keeps its threads.
        project: ProjectId,
        /// The previous path.
        from: &'known str,
    },
    /// The folder is a copy and the original still exists: a new project.
    Copied {
        /// The project of the original.
        of: ProjectId,
    },
    /// Another folder is at the path of a known project: a new project.
    Replaced {
        /// The project formerly at this path, to be named to the user.
        formerly: ProjectId,
    },
    /// An unknown folder: a new project.
    New {
        /// A project it may have been, without proof, to be named to the user.
        perhaps: Option<ProjectId>,
    },
}

impl ProjectRecord {
    /// Whether this project can affect the decision on `folder`; callers may skip all others.
    pub fn is_relevant_to(&self, folder: &Folder) -> bool {
        folder.mark == Some(self.id)
            || self.path == folder.path
            || (self.device, self.inode) == (folder.device, folder.inode)
    }

    fn at_path_of(&self, folder: &Folder) -> bool {
        self.path == folder.path
    }

    fn proven_by(&self, folder: &Folder) -> bool {
        // Some systems assign new device numbers at boot, so inode and creation time suffice at the recorded
        // path. Elsewhere they would also match a snapshot of the whole file system.
        let same_device = self.device == folder.device || self.at_path_of(folder);
        same_device && self.inode == folder.inode && self.born.is_some() && self.born == folder.born
    }

    fn alike(&self, folder: &Folder) -> bool {
        let birth_unknown = self.born.is_none() || folder.born.is_none();
        birth_unknown && (self.device, self.inode) == (folder.device, folder.inode)
    }

    /// Whether the file system proves that a folder at another path is not the recorded one: on one device, a
    /// rename preserves inode and creation time.
    fn contradicted_by(&self, folder: &Folder) -> bool {
        let other_birth = self.born.is_some() && folder.born.is_some() && self.born != folder.born;
        self.device == folder.device && (self.inode != folder.inode || other_birth)
    }

    fn remote_agrees(&self, folder: &Folder) -> bool {
        self.remote.is_some() && self.remote == folder.remote
    }

    fn remote_contradicts(&self, folder: &Folder) -> bool {
        self.remote.is_some() && folder.remote.is_some() && self.remote != folder.remote
    }
}

impl ProjectCandidate {
    /// Whether the recorded path leads to `folder` itself.
    fn is_same_folder(&self, folder: &Folder) -> bool {
        self.there.as_ref().is_some_and(|there| {
            (there.device, there.inode, there.born) == (folder.device, folder.inode, folder.born)
        })
    }

    /// Whether the project's own folder is still at its recorded path.
    fn still_exists(&self) -> bool {
        self.there.as_ref().is_some_and(|there| match there.mark {
            Some(mark) if mark == self.record.id => true,
            // A mark that names another project may come from a copied attribute.
            Some(_) => self.record.proven_by(there),
            None => self.record.proven_by(there) || self.record.alike(there),
        })
    }

    /// The verdict on a folder at another path that the file system identifies as the recorded one.
    fn found_elsewhere(&self, folder: &Folder) -> ProjectVerdict<'_> {
        let project = self.record.id;
        let still_there = |there: &Folder| {
            self.record.proven_by(there) || (there.mark == Some(project) && self.record.alike(there))
        };
        if self.is_same_folder(folder) {
            ProjectVerdict::Same(project)
        } else if self.there.as_ref().is_some_and(still_there) {
            ProjectVerdict::Copied { of: project }
        } else {
            ProjectVerdict::Moved { project, from: &self.record.path }
        }
    }

    /// The verdict on a folder at another path that only its mark connects to this project.
    fn marked_elsewhere(&self, folder: &Folder) -> ProjectVerdict<'_> {
        let project = self.record.id;
        if self.is_same_folder(folder) {
            ProjectVerdict::Same(project)
        } else if self.still_exists() || self.renamed || self.record.contradicted_by(folder) {
            ProjectVerdict::Copied { of: project }
        } else {
            ProjectVerdict::Moved { project, from: &self.record.path }
        }
    }
}

/// Decides which project a folder belongs to.
pub fn decide<'known>(folder: &Folder, known: &'known [ProjectCandidate]) -> ProjectVerdict<'known> {
    let latest = |fits: &dyn Fn(&ProjectCandidate) -> bool| {
        known.iter().filter(|candidate| fits(candidate)).max_by_key(|candidate| candidate.record.last_seen)
    };
    let here = |candidate: &ProjectCandidate| candidate.record.at_path_of(folder);

    if let Some(found) = latest(&|candidate| here(candidate) && candidate.record.proven_by(folder)) {
        return ProjectVerdict::Same(found.record.id);
    }
    if let Some(found) = latest(&|candidate| folder.mark == Some(candidate.record.id)) {
        let record = &found.record;
        return if here(found) {
            if found.renamed {
                ProjectVerdict::Copied { of: record.id }
            } else {
                ProjectVerdict::Same(record.id)
            }
        } else if record.proven_by(folder) || record.alike(folder) {
            found.found_elsewhere(folder)
        } else {
            found.marked_elsewhere(folder)
        };
    }
    if let Some(found) = latest(&|candidate| candidate.record.proven_by(folder)) {
        return found.found_elsewhere(folder);
    }
    if let Some(found) = latest(&here) {
        let record = &found.record;
        let alike = record.alike(folder) && !record.remote_contradicts(folder);
        return if alike || record.remote_agrees(folder) {
            ProjectVerdict::Same(record.id)
        } else {
            ProjectVerdict::Replaced { formerly: record.id }
        };
    }
    let Some(found) = latest(&|candidate| candidate.record.alike(folder)) else {
        return ProjectVerdict::New { perhaps: None };
    };
    let record = &found.record;
    if found.is_same_folder(folder) {
        ProjectVerdict::Same(record.id)
    } else if found.there.is_none() && record.remote_agrees(folder) {
        ProjectVerdict::Moved { project: record.id, from: &record.path }
    } else {
        ProjectVerdict::New { perhaps: Some(record.id) }
    }
}

#[cfg(test)]
mod tests;
