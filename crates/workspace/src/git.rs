//! Where a folder stands in git: branch, commit, remote, and the root of its work tree.
//!
//! Git is not run for this. A repository may configure programs (a file system monitor, hooks, filters) that
//! git would run on the way, and a folder is looked at before anyone trusts it. So the few files that matter
//! are read here, with bounds, and nothing else is done with them:
//!
//! ```text
//!   folder, and upwards          .git/ ───────────────────────────► git folder ── HEAD ──► refs
//!      until a `.git`            .git  "gitdir: …" ──► git folder ──── commondir ──► common folder
//!                                                                       (refs, packed-refs, config)
//! ```
//!
//! A pointer may lead anywhere; it is only ever read. Only regular files are opened, so that a pipe or a
//! device in the place of one cannot hold the reader up. Whatever is missing, malformed or too large is simply
//! not known: no caller fails because of a strange repository.

mod around;
mod config;
mod dirty;
mod index;
mod locate;
mod objects;
mod read;
mod refs;
mod sha1;
mod staged;
mod untracked;
mod url;

use std::path::{Path, PathBuf};

pub(crate) use around::around;

/// Where a folder stands in git, as far as it can be read.
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
    /// `None` where this cannot be decided from few files without running git: more than 20,000 tracked files, a split
    /// or sparse index, attributes or filters that change content, repositories inside, a commit that is stored as a
    /// delta, names by another hash than SHA-1. What differs for certain is reported even then.
    pub dirty: Option<bool>,
}

/// Reads where a folder stands in git.
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

/// The address that a folder's repository is pushed to, without the cost of [`observe`].
pub(crate) fn remote(folder: &Path) -> Option<String> {
    config::remote(&locate::locate(folder)?.common)
}

/// The top folder of the work tree that holds a folder.
pub(crate) fn work_tree(folder: &Path) -> Option<PathBuf> {
    locate::locate(folder)?.root
}
