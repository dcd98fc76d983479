//! From a folder to its repository, the way git looks for it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::read::{self, Links};

/// A pointer to another folder is one path and little else.
const POINTER_LIMIT: usize = 16 * 1024;

/// A repository, as seen from one work tree.
pub(super) struct Repository {
    /// The top of the work tree; a bare repository has none.
    pub(super) root: Option<PathBuf>,
    /// What belongs to this work tree alone: `HEAD`.
    pub(super) git: PathBuf,
    /// What all work trees of the repository share: branches, configuration.
    pub(super) common: PathBuf,
}

/// Finds the repository that a folder is in.
pub(super) fn locate(folder: &Path) -> Option<Repository> {
    let folder = folder.canonicalize().ok()?;
    let device = fs::metadata(&folder).ok()?.dev();
    for ancestor in folder.ancestors() {
        // Like git, never past a mount point: what is above belongs to another disk, perhaps to another user.
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
    // A pointer that leads nowhere still says that a work tree begins here: going on upwards would take the
    // branch of a repository around it for this one's.
    metadata.is_file().then(|| pointed(&entry, b"gitdir:", work_tree).unwrap_or(entry))
}

fn common_of(git: &Path) -> PathBuf {
    pointed(&git.join("commondir"), b"", git).unwrap_or_else(|| git.to_owned())
}

/// The path that a pointer file names, relative to `base`.
fn pointed(file: &Path, prefix: &[u8], base: &Path) -> Option<PathBuf> {
    let bytes = read::whole(file, Links::Follow, POINTER_LIMIT)?;
    let path = bytes.strip_prefix(prefix)?.trim_ascii();
    let wrong = path.is_empty() || path.iter().any(|byte| matches!(byte, 0 | b'\n'));
    (!wrong).then(|| base.join(OsString::from_vec(path.to_vec())))
}

/// Whether a folder looks like a repository's own, by the signs that git goes by.
fn is_git_folder(folder: &Path) -> bool {
    if fs::symlink_metadata(folder.join("HEAD")).is_err() {
        return false;
    }
    let common = common_of(folder);
    common.join("objects").is_dir() && common.join("refs").is_dir()
}
