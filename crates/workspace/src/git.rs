//! Reads branch, commit, remote and work tree of a folder, and writes a new branch (`branch.rs`).
//!
//! Git itself does not run, because a repository can configure programs (a file system monitor, hooks, filters) that
//! git would start, and Retake reads folders before anyone trusts them. This module reads the few relevant files, with
//! size limits:
//!
//! ```text
//!   folder, and upwards          .git/ ───────────────────────────► git folder ── HEAD ──► refs
//!      until a `.git`            .git  "gitdir: …" ──► git folder ──── commondir ──► common folder
//!                                                                       (refs, packed-refs, config)
//! ```
//!
//! A pointer may lead anywhere, but is only read. Only regular files are opened, so that a pipe or device cannot block.
//! Anything that is missing, malformed or too large counts as unknown: no caller fails because of a strange repository.

mod branch;
mod config;
mod dirty;
mod identity;
mod index;
mod locate;
mod objects;
mod origin;
mod outer_ignore_rules;
mod pack;
mod read;
mod refs;
mod sha1;
mod staged;
mod untracked;
mod url;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use branch::{
    BranchError, BranchPlan, BranchReport, BranchRequest, GitIdentity, OmittedPath, plan_branch,
};
pub use origin::{Origin, origin};
pub(crate) use outer_ignore_rules::outer_ignore_rules;

/// Git facts about a folder, as far as they can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitFacts {
    /// The branch that is checked out, without `refs/heads/`; it may have no commit yet.
    pub branch: Option<String>,
    /// The commit that is checked out, as 40 or 64 hexadecimal digits.
    pub commit: Option<String>,
    /// The address of `origin`, or else of the first remote, without credentials.
    pub remote: Option<String>,
    /// The top folder of the work tree.
    pub root: Option<PathBuf>,
    /// Whether `git status` would list anything: changed, staged or untracked files.
    ///
    /// `None` if this cannot be decided from a few files without running git: more than 20,000 tracked files, a split
    /// or sparse index, attributes or filters that change content, nested repositories,
    /// hashes other than SHA-1. Certain differences are reported even then.
    pub dirty: Option<bool>,
}

/// Whether a work tree has changes, remembered for callers that notice changes of its files.
#[derive(Debug, Default)]
pub(crate) struct DirtyMemo(Option<(DirtyStamp, Option<bool>)>);

/// What the answer depends on besides the files: the top of the work tree, the commit, and the index.
type DirtyStamp = (PathBuf, Option<String>, Option<[i64; 4]>);

impl DirtyMemo {
    /// Forgets the answer, because files may have changed.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

/// Reads the git facts about a folder.
pub fn observe(folder: &Path) -> GitFacts {
    observe_remembering(folder, &mut DirtyMemo::default())
}

/// Like [`observe`], without comparing the files again if they and the index are those of the last answer.
pub(crate) fn observe_remembering(folder: &Path, memo: &mut DirtyMemo) -> GitFacts {
    let Some(repository) = locate::locate(folder) else {
        return GitFacts::default();
    };
    let head = refs::head(&repository.git, &repository.common);
    // Only the files of the folder itself are watched, not those of a larger work tree.
    let stamp =
        repository.root.clone().filter(|root| folder.canonicalize().is_ok_and(|folder| folder == *root));
    let stamp = stamp.map(|root| (root, head.commit.clone(), index_stamp(&repository.git)));
    let dirty = match (&memo.0, &stamp) {
        (Some((known, dirty)), Some(stamp)) if known == stamp => *dirty,
        _ => dirty::dirty(&repository, &head),
    };
    memo.0 = stamp.map(|stamp| (stamp, dirty));
    GitFacts {
        branch: head.branch,
        commit: head.commit,
        remote: config::remote(&repository.common),
        dirty,
        root: repository.root,
    }
}

/// Stamp of the index file; `None` if there is none.
fn index_stamp(git: &Path) -> Option<[i64; 4]> {
    let found = fs::metadata(git.join("index")).ok()?;
    let changed = found.ctime().wrapping_mul(1_000_000_000).wrapping_add(found.ctime_nsec());
    Some([found.ino() as i64, found.size() as i64, found.mtime_nsec(), changed])
}

/// Remote of a folder's repository, without the cost of [`observe`].
pub(crate) fn remote(folder: &Path) -> Option<String> {
    config::remote(&locate::locate(folder)?.common)
}

/// Top folder of the work tree that contains a folder.
pub(crate) fn work_tree(folder: &Path) -> Option<PathBuf> {
    locate::locate(folder)?.root
}
