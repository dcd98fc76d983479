//! Finds the repository of a folder, like git does.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::read::{self, Links};

/// A pointer file contains one path and little else.
const POINTER_LIMIT: usize = 16 * 1024;

/// A repository as one work tree sees it.
pub(super) struct Repository {
    /// Top of the work tree; `None` for a bare repository.
    pub(super) root: Option<PathBuf>,
    /// Folder of this work tree's own data: `HEAD`.
    pub(super) git: PathBuf,
    /// Folder of the data that all work trees share: branches, configuration.
    pub(super) common: PathBuf,
}

/// Finds the repository that contains a folder.
pub(super) fn locate(folder: &Path) -> Option<Repository> {
    let folder = folder.canonicalize().ok()?;
    let device = fs::metadata(&folder).ok()?.dev();
    for ancestor in folder.ancestors() {
        // Like git, stop at mount points: parents beyond belong to another disk, perhaps to another user.
        if fs::metadata(ancestor).ok()?.dev() != device {
            return None;
        }
        if let Some(git) = git_folder_of(ancestor) {
            let common = common_of(&git);
            return Some(Repository { root: Some(ancestor.to_owned()), git, common });
        }
        if is_git_folder(ancestor) {
            let common = common_of(ancestor);
            return Some(Repository { root: None, git: ancestor.to_owned(), common });
        }
    }
    None
}

/// The git folder that a work tree's `.git` is or points to.
fn git_folder_of(work_tree: &Path) -> Option<PathBuf> {
    let entry = work_tree.join(".git");
    let metadata = fs::metadata(&entry).ok()?;
    if metadata.is_dir() {
        return is_git_folder(&entry).then_some(entry);
    }
    // A dangling pointer still marks the top of a work tree: searching further up would report the branch of an outer
    // repository.
    metadata.is_file().then(|| read_pointer(&entry, b"gitdir:", work_tree).unwrap_or(entry))
}

fn common_of(git: &Path) -> PathBuf {
    read_pointer(&git.join("commondir"), b"", git).unwrap_or_else(|| git.to_owned())
}

/// The path in a pointer file, relative to `base`.
fn read_pointer(file: &Path, prefix: &[u8], base: &Path) -> Option<PathBuf> {
    let bytes = read::read_limited(file, Links::Follow, POINTER_LIMIT)?;
    let path = bytes.strip_prefix(prefix)?.trim_ascii();
    let wrong = path.is_empty() || path.iter().any(|byte| matches!(byte, 0 | b'\n'));
    (!wrong).then(|| base.join(OsString::from_vec(path.to_vec())))
}

/// Returns whether a folder looks like a git folder, by git's own criteria.
fn is_git_folder(folder: &Path) -> bool {
    if fs::symlink_metadata(folder.join("HEAD")).is_err() {
        return false;
    }
    let common = common_of(folder);
    common.join("objects").is_dir() && common.join("refs").is_dir()
}
