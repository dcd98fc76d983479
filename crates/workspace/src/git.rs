//! Reads branch, commit, remote and work tree of a folder.
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

mod config;
mod dirty;
mod index;
mod locate;
mod objects;
mod outer_ignore_rules;
mod read;
mod refs;
mod sha1;
mod staged;
mod untracked;
mod url;

use std::path::{Path, PathBuf};

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
    /// or sparse index, attributes or filters that change content, nested repositories, a commit that is stored as a
    /// delta, hashes other than SHA-1. Certain differences are reported even then.
    pub dirty: Option<bool>,
}

/// Reads the git facts about a folder.
pub fn observe(folder: &Path) -> GitFacts {
    let Some(repository) = locate::locate(folder) else {
        return GitFacts::default();
    };
    let head = refs::head(&repository.git, &repository.common);
    let dirty = dirty::dirty(&repository, &head);
    GitFacts {
        branch: head.branch,
        commit: head.commit,
        remote: config::remote(&repository.common),
        dirty,
        root: repository.root,
    }
}

/// Remote of a folder's repository, without the cost of [`observe`].
pub(crate) fn remote(folder: &Path) -> Option<String> {
    config::remote(&locate::locate(folder)?.common)
}

/// Top folder of the work tree that contains a folder.
pub(crate) fn work_tree(folder: &Path) -> Option<PathBuf> {
    locate::locate(folder)?.root
}
