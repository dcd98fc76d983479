//! A place that stores the bundles of threads and orders them.
//!
//! The remote decides the order of bundles and nothing else: a bundle is added only behind the head that its writer saw.
//! Files of a project travel beside them, as a list of packs of the project, if the project opted in.

mod connect;
mod folder;
mod http;
mod hub;
mod objects;
mod s3;

use std::collections::BTreeMap;
use std::time::Duration;

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::Version;
use serde::{Deserialize, Serialize};

use crate::bundle::BundleId;
use crate::wire::ThreadDetails;

pub use connect::{Credentials, OpenMode, connect};
pub use folder::{Folder, FolderRemote};
pub use hub::{HubConnection, HubRemote};
pub use objects::{ObjectRemote, ObjectSpace, OpenRemoteError};
pub use s3::{Bucket, BucketAddress, BucketRemote};

/// One bundle of a thread, and what the thread is after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteHead {
    /// Its position in the list of bundles, from 1.
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
    /// What a hub finds it by; other remotes do not store it.
    #[serde(skip)]
    pub details: ThreadDetails,
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
    /// The name of the project on a remote; `None` if nothing identifies it.
    pub fn name(&self) -> Option<ProjectName> {
        let mut hash = blake3::Hasher::new_derive_key("retake project of a remote 1");
        match (&self.id, &self.git_remote, &self.root_commit) {
            (Some(id), ..) => hash.update(b"id").update(id.as_bytes()),
            (None, Some(remote), Some(commit)) => {
                let length = (remote.len() as u64).to_be_bytes();
                hash.update(b"git").update(&length).update(remote.as_bytes()).update(commit.as_bytes())
            }
            _ => return None,
        };
        Some(ProjectName(*hash.finalize().as_bytes()))
    }

    /// Whether both are certainly the same project.
    pub fn matches(&self, other: &Self) -> bool {
        // A template with a committed id, from which another repository was made, is another project.
        if let (Some(left), Some(right)) = (&self.root_commit, &other.root_commit)
            && left != right
        {
            return false;
        }
        if let (Some(left), Some(right)) = (&self.id, &other.id) {
            return left == right;
        }
        let both = |left: &Option<String>, right: &Option<String>| left.is_some() && left == right;
        both(&self.git_remote, &other.git_remote) && both(&self.root_commit, &other.root_commit)
    }
}

/// A project on a remote: a hash of its key, so that the files of two projects are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectName([u8; 32]);

impl std::fmt::Display for ProjectName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl std::str::FromStr for ProjectName {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

/// One pack of a project's files: content of snapshots, and the operations that they belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackHead {
    /// Its position in the list of packs, from 1.
    pub number: u64,
    /// Its name: the hash of its bytes.
    pub pack: BundleId,
    /// Its size.
    pub bytes: u64,
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The bundle is the last one now, and durable.
    Added,
    /// Another machine added one first.
    Moved,
}

/// A thread in the list of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteThread {
    /// The thread.
    pub thread: ThreadId,
    /// Its last bundle.
    pub head: RemoteHead,
}

/// What a machine knows of a remote, from which the remote tells what is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the last [`Feed`] returned.
    pub cursor: Option<String>,
    /// The last bundle of each thread that this machine knows. A remote with a cursor of its own needs not read it.
    pub heads: BTreeMap<ThreadId, u64>,
}

/// What is new on a remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// For the next request.
    pub cursor: Option<String>,
    /// The news. An event may come again; the last one of a thread is enough.
    pub events: Vec<FeedEvent>,
}

/// One piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEvent {
    /// A thread has new bundles.
    Moved(ThreadId),
    /// A thread was removed by [`Remote::purge`].
    Purged(ThreadId),
    /// Content of a thread was destroyed by [`Remote::redact`].
    Redacted(ThreadId),
}

/// A place for bundles. It orders them and decides nothing else.
///
/// A request for a thread or project that does not exist and for one that the caller may not see have the same answer: an
/// empty row.
pub trait Remote: Send + Sync {
    /// Where it is, for messages; without credentials.
    fn place(&self) -> String;
    /// The threads that it has.
    fn threads(&self) -> Result<Vec<RemoteThread>, RemoteError>;
    /// The bundles of a thread after a position, in order.
    fn heads(&self, thread: ThreadId, after: u64) -> Result<Vec<RemoteHead>, RemoteError>;
    /// The bytes of a bundle, checked against its name.
    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError>;
    /// Adds a bundle behind the last one, which must have the position before it. A bundle can have 128 MiB: a server
    /// sends a large one in parts that can be resumed.
    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError>;
    /// What is new. Waits up to `wait` for news; zero answers at once.
    fn feed(&self, seen: &Seen, wait: Duration) -> Result<Feed, RemoteError>;

    /// Removes everything of a thread for good. Later requests for it answer [`RemoteError::Purged`].
    fn purge(&self, thread: ThreadId) -> Result<(), RemoteError>;
    /// Destroys content: removes it from every bundle of the thread ([`crate::bundle::redacted`]; the operations and
    /// their order stay), and refuses it from now on.
    fn redact(&self, thread: ThreadId, content: &[ContentId]) -> Result<(), RemoteError>;
    /// The content of a thread that was destroyed.
    fn redactions(&self, thread: ThreadId) -> Result<Vec<ContentId>, RemoteError>;

    /// The packs of a project's files after a position, in order.
    fn packs(&self, project: ProjectName, after: u64) -> Result<Vec<PackHead>, RemoteError>;
    /// The bytes of a pack, checked against its name.
    fn pack(&self, project: ProjectName, head: &PackHead) -> Result<Vec<u8>, RemoteError>;
    /// Adds a pack behind the last one, which must have the position before it.
    fn push_pack(
        &self,
        project: ProjectName,
        head: &PackHead,
        pack: &[u8],
    ) -> Result<PushOutcome, RemoteError>;
}

/// Why a remote did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It cannot be reached. It is tried again.
    #[error("{place} cannot be reached: {error}")]
    Unreachable {
        /// Where it is.
        place: String,
        /// The error.
        error: std::io::Error,
    },
    /// It has too much to do, or has a fault of its own. It is tried again.
    #[error("{place} is busy: {reason}")]
    Busy {
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
        /// When to try again, if it said so.
        after: Option<Duration>,
    },
    /// The credentials are missing, expired or revoked.
    #[error("{place} refuses the credentials of this machine: {reason}")]
    Unauthorized {
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
    },
    /// The caller may not do this.
    #[error("{place} does not permit this: {reason}")]
    Forbidden {
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
    },
    /// There is no room left.
    #[error("{place} has no room left: {reason}")]
    Quota {
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
    },
    /// The thread was removed from the remote for good.
    #[error("the thread was purged on the remote")]
    Purged,
    /// It refuses this bundle or request, however often it is repeated.
    #[error("{place} refuses the request: {reason}")]
    Refused {
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
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

/// What is necessary before a failed exchange can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// Nothing but time: it is tried again.
    Wait,
    /// New credentials.
    Login,
    /// Permission of another person.
    Permission,
    /// More room.
    Quota,
    /// A decision: the thread was purged on the remote.
    Purged,
    /// A newer version of this program.
    Update,
    /// A look at the error: it is no temporary one.
    Look,
}

impl RemoteError {
    /// What is necessary before the same request can succeed.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable { .. } | Self::Busy { .. } => Remedy::Wait,
            Self::Unauthorized { .. } => Remedy::Login,
            Self::Forbidden { .. } => Remedy::Permission,
            Self::Quota { .. } => Remedy::Quota,
            Self::Purged => Remedy::Purged,
            Self::Newer { .. } => Remedy::Update,
            Self::Refused { .. } | Self::Damaged(_) => Remedy::Look,
        }
    }
}
