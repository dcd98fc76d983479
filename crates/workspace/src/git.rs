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
mod read;
mod refs;
mod sha1;
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
    /// Whether tracked files differ from the index: one is changed, gone, in conflict, or only meant to be added.
    ///
    /// `false` means that each is as the index has it, and that the index says it is a tree which was written or
    /// checked out, with nothing added to it since. It does not mean that this tree is the commit's: a branch that
    /// was moved alone (`git reset --soft`) leaves them apart. Files that are not tracked never count. Unknown
    /// where it cannot be told from few files: more than 20,000 of them, a split or sparse index, attributes,
    /// filters or line ends that change content, repositories inside, names by another hash than SHA-1.
    pub dirty: Option<bool>,
}

/// Reads where a folder stands in git.
pub fn observe(folder: &Path) -> GitFacts {
    let Some(repository) = locate::locate(folder) else {
        return GitFacts::default();
    };
    let head = refs::head(&repository.git, &repository.common);
    GitFacts {
        branch: head.branch,
        commit: head.commit,
        remote: config::remote(&repository.common),
        dirty: dirty::dirty(&repository),
        root: repository.root,
    }
}

/// The top folder of the work tree that holds a folder.
pub(crate) fn work_tree(folder: &Path) -> Option<PathBuf> {
    locate::locate(folder)?.root
}
