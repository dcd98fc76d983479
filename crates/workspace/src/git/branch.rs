//! Writes files as a commit on a new branch: the only part of Retake that writes to a repository, on an explicit command.
//!
//! ```text
//!   plan      tree of the parent  ──┐
//!             recorded files      ──┴─► blobs, trees, commit: their ids, and which the repository lacks
//!   execute   one new pack with those ──► refs/heads/NAME, which must not exist
//! ```
//!
//! The index, the stash, the checked-out branch and the work tree are not touched, and nothing runs that the repository
//! configures: no hook, no filter. A file that Retake does not record (ignored, a likely secret, too large) stays as it is
//! in the parent, and is absent if it is not there. What git cannot store is left out and reported: empty folders, names
//! that git refuses.

mod author;
mod merge;
mod write;

use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::object::{ObjectError, Objects};
use retake_model::time::Timestamp;
use retake_model::tree::{Node, SnapshotRoot};
use serde::Serialize;

use self::merge::Merge;
pub use super::identity::GitIdentity;
use super::objects::{ObjectDatabase, ObjectId, ObjectKind, digits_of, id_of};
use super::{config, identity, locate, refs, sha1};

/// The files, and the commit to make of them.
pub struct BranchRequest<'a> {
    /// The folder of the files; the repository is the one that contains it.
    pub folder: &'a Path,
    /// The name of the new branch.
    pub branch: &'a str,
    /// The recorded files.
    pub root: &'a SnapshotRoot,
    /// The commit on which the files are based, if it is recorded; otherwise the one that is checked out.
    pub parent: Option<&'a str>,
    /// The author; otherwise the user of the repository's configuration, or of these files.
    pub author: Option<GitIdentity>,
    /// Configuration files of the user.
    pub user_configuration: &'a [PathBuf],
    /// The message.
    pub message: &'a str,
    /// The time of the commit.
    pub time: Timestamp,
}

/// A commit that can be written.
#[derive(Debug)]
pub struct BranchPlan {
    report: BranchReport,
    common: PathBuf,
    commit: ObjectId,
    objects: Vec<NewObject>,
}

/// An object that the repository lacks.
#[derive(Debug)]
struct NewObject {
    id: ObjectId,
    kind: ObjectKind,
    content: NewContent,
}

#[derive(Debug)]
enum NewContent {
    Bytes(Vec<u8>),
    File(Node),
}

/// What a new branch contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BranchReport {
    /// The name of the branch.
    pub branch: String,
    /// The commit.
    pub commit: String,
    /// Its parent; `null` in a repository without commits.
    pub parent: Option<String>,
    /// The top folder of the repository's work tree.
    pub repository: String,
    /// Number of files that the parent lacks.
    pub added: u64,
    /// Number of files that differ from those of the parent.
    pub changed: u64,
    /// Number of files of the parent that the commit lacks.
    pub removed: u64,
    /// Files that are not recorded, such as ignored ones, and are as in the parent; at most 100.
    pub kept: Vec<String>,
    /// Number of these.
    pub kept_count: u64,
    /// Paths that are not in the commit, with the reason; at most 100.
    pub omitted: Vec<OmittedPath>,
    /// Number of these.
    pub omitted_count: u64,
    /// Whether the repository converts files (line endings, or filters such as Git LFS). The commit has the bytes of the
    /// folder instead.
    pub unconverted: bool,
}

/// A path that is not in a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OmittedPath {
    /// The path.
    pub path: String,
    /// The reason.
    pub reason: &'static str,
}

/// No branch was written.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// There is no repository.
    #[error("{0} is not in a git repository; `git init` makes one")]
    NoRepository(String),
    /// The format of the repository is not supported.
    #[error("the repository {0}, which Retake does not write")]
    Unsupported(&'static str),
    /// The repository belongs to somebody else.
    #[error("the repository belongs to another user")]
    OtherOwner,
    /// A folder of the repository is a link.
    #[error("{0} is a link; Retake writes only into the repository itself")]
    Linked(String),
    /// Git refuses the name.
    #[error(
        "`{0}` is not a valid name of a branch: no spaces, `..`, `~ ^ : ? * [ \\`, and no `/` or `.lock` at its end"
    )]
    InvalidName(String),
    /// The branch exists, or another one is in its way.
    #[error("the branch `{0}` already exists; choose another name")]
    Exists(String),
    /// The branch is checked out, without a commit yet.
    #[error("`{0}` is the branch that is checked out; choose another name")]
    CheckedOut(String),
    /// No author is known.
    #[error(
        "git knows no author: set one with `git config user.name` and `git config user.email`, or use --author \"Name <address>\""
    )]
    NoAuthor,
    /// An object of the repository cannot be read.
    #[error("the {kind} {id} of the repository cannot be read; `git fsck` checks the repository")]
    Unreadable {
        /// Its kind.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// Content is missing from the store.
    #[error(transparent)]
    Content(#[from] ObjectError),
    /// The repository cannot be written.
    #[error("the repository cannot be written: {0}")]
    Write(#[from] std::io::Error),
}

/// Works out the commit, without writing anything.
pub fn plan_branch(
    request: &BranchRequest<'_>,
    objects: &dyn Objects,
    progress: &mut dyn FnMut(u64),
) -> Result<BranchPlan, BranchError> {
    let folder = request.folder.display().to_string();
    let repository = locate::locate(request.folder).filter(|found| found.root.is_some());
    let repository = repository.ok_or(BranchError::NoRepository(folder.clone()))?;
    let top = repository.root.as_deref().ok_or(BranchError::NoRepository(folder.clone()))?;
    let configuration = config::variables(&config::text(&repository.common).unwrap_or_default());
    write::check_repository(&repository.common, &configuration)?;
    if !refs::is_valid_branch(request.branch) {
        return Err(BranchError::InvalidName(request.branch.to_owned()));
    }
    if let Some(found) = refs::branch_in_the_way(&repository.common, request.branch) {
        return Err(BranchError::Exists(found));
    }
    if refs::is_checked_out(&repository.git, &repository.common, request.branch) {
        return Err(BranchError::CheckedOut(request.branch.to_owned()));
    }
    let database = ObjectDatabase::open(&repository.common);
    let parent = parent(request, &repository, &database)?;
    let parent_tree = match &parent {
        Some(commit) => Some(
            database
                .tree_of_commit(commit)
                .ok_or_else(|| BranchError::Unreadable { kind: "commit", id: digits_of(commit) })?,
        ),
        None => None,
    };
    let author = request.author.clone().or_else(|| {
        let own = [repository.common.join("config")];
        identity::from_files(&[&own, request.user_configuration].concat())
    });
    let author = author.ok_or(BranchError::NoAuthor)?;
    let inside = request.folder.canonicalize()?;
    let prefix = inside.strip_prefix(top).map_err(|_| BranchError::NoRepository(folder))?;
    let mut merge = Merge::new(objects, &database, request.root, progress)?;
    let tree = merge.commit_tree(prefix, parent_tree)?;
    merge.report.unconverted |= author::converts(&configuration);
    let (mut report, mut new) = (merge.report, merge.new);
    let text = author::commit(&tree, parent.as_ref(), &author, request.time, request.message);
    let commit = sha1::object("commit", &text);
    new.push(NewObject { id: commit, kind: ObjectKind::Commit, content: NewContent::Bytes(text) });
    report.branch = request.branch.to_owned();
    report.commit = digits_of(&commit);
    report.parent = parent.as_ref().map(digits_of);
    report.repository = top.display().to_string();
    Ok(BranchPlan { report, common: repository.common, commit, objects: new })
}

impl BranchPlan {
    /// What the branch will contain.
    pub fn report(&self) -> &BranchReport {
        &self.report
    }

    /// Writes the objects and then the branch.
    pub fn execute(
        self,
        objects: &dyn Objects,
        progress: &mut dyn FnMut(u64),
    ) -> Result<BranchReport, BranchError> {
        write::objects(&self.common, &self.objects, objects, progress)?;
        write::branch(&self.common, &self.report.branch, &self.commit)?;
        Ok(self.report)
    }
}

/// The recorded commit, or the one that is checked out if the recorded one is gone.
fn parent(
    request: &BranchRequest<'_>,
    repository: &locate::Repository,
    database: &ObjectDatabase,
) -> Result<Option<ObjectId>, BranchError> {
    let recorded = request.parent.and_then(id_of).filter(|id| database.tree_of_commit(id).is_some());
    if recorded.is_some() {
        return Ok(recorded);
    }
    match refs::head(&repository.git, &repository.common) {
        refs::Head { commit: Some(commit), .. } => {
            id_of(&commit).map(Some).ok_or(BranchError::Unsupported("does not use SHA-1"))
        }
        refs::Head { branch: Some(_), commit: None } => Ok(None),
        refs::Head { .. } => Err(BranchError::Unreadable { kind: "reference", id: "HEAD".to_owned() }),
    }
}

/// The tree of a snapshot's root.
fn tree_id(root: &SnapshotRoot) -> ContentId {
    root.tree
}
