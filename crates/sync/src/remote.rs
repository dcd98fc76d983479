//! A place where the bundles of threads are kept, and that orders them.
//!
//! The remote decides the order of bundles and nothing else: a bundle is added only behind the head that its writer saw.
//! Two implementations exist: a folder, and later a server.

mod folder;

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::Version;
use serde::{Deserialize, Serialize};

use crate::bundle::BundleId;

pub use folder::{FolderRemote, OpenFolderError};

/// One bundle of a thread, and what the thread is after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteHead {
    /// Its position in the row of bundles, from 1.
    pub number: u64,
    /// The version of its first operation.
    pub first: Version,
    /// The version of its last operation.
    pub last: Version,
    /// The id of its last operation.
    pub head: ContentId,
    /// Its name.
    pub bundle: BundleId,
    /// Its size.
    pub bytes: u64,
    /// What lists show.
    pub summary: RemoteSummary,
}

/// What lists of a remote show of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSummary {
    /// The title.
    pub title: String,
    /// The project.
    pub project: ProjectKey,
    /// Time of the last operation, in milliseconds since 1970.
    pub updated: i64,
}

/// How machines recognize a project: never by a path or a name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProjectKey {
    /// The id in a file of the project, or the one that a person linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The git remote, without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_remote: Option<String>,
    /// The first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_commit: Option<String>,
}

impl ProjectKey {
    /// Whether both are certainly the same project.
    pub fn matches(&self, other: &Self) -> bool {
        if let (Some(left), Some(right)) = (&self.id, &other.id) {
            return left == right;
        }
        let both = |left: &Option<String>, right: &Option<String>| left.is_some() && left == right;
        both(&self.git_remote, &other.git_remote) && both(&self.root_commit, &other.root_commit)
    }
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The bundle is the last one now, and durable.
    Added,
    /// Another machine added one first.
    Moved,
}

/// A place for bundles. All its errors may be temporary.
pub trait Remote {
    /// The threads that it has.
    fn threads(&self) -> Result<Vec<ThreadId>, RemoteError>;
    /// The bundles of a thread after a position, in order.
    fn heads(&self, thread: ThreadId, after: u64) -> Result<Vec<RemoteHead>, RemoteError>;
    /// The bytes of a bundle, checked against its name.
    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError>;
    /// Adds a bundle behind the last one, which must have the position before it.
    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError>;
}

/// Why a remote did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It cannot be reached.
    #[error("the remote {place} could not be used: {error}")]
    Unreachable {
        /// Where it is.
        place: String,
        /// The error.
        error: std::io::Error,
    },
    /// What it has is damaged.
    #[error("the remote is damaged: {0}")]
    Damaged(String),
    /// A newer version of this program wrote it.
    #[error("the remote has format {found}; update this program")]
    Newer {
        /// Its format.
        found: u64,
    },
}
