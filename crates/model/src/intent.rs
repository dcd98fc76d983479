//! Intents: what is being done to a folder, written down before the first file moves.
//!
//! ```text
//!   1  intent durable ──► 2  files move, path by path ──► 3  operation published, intent gone
//!        └── a crash from here on: whoever comes next finishes 2 and does 3
//! ```
//!
//! An intent holds the whole operation, so that finishing it needs nothing but the store and the folder.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::content::ContentId;
use crate::id::{FolderId, ProjectId, TakeId, ThreadId, TurnId};
use crate::operation::{Actor, FileChange, Operation};
use crate::time::Timestamp;

/// A folder that files are kept of.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FolderRecord {
    /// Its identity: that of its project, or one of its own.
    #[n(0)]
    pub id: FolderId,
    /// The project it belongs to.
    #[n(1)]
    pub project: ProjectId,
    /// Where its roots are, by name; the main root has the empty name and comes first.
    #[n(2)]
    pub roots: Vec<(String, String)>,
    /// What it was when Retake last knew it.
    #[n(3)]
    pub snapshot: Option<ContentId>,
    /// The take that lives in it apart from the others; none for the folder of the project itself.
    #[n(4)]
    pub apart: Option<Apart>,
    /// What runs in it: what changes meanwhile is its doing. After a crash it says whose the changes are.
    #[n(5)]
    pub running: Option<Running>,
    /// Which folder on the disk it is, where the path alone does not say that: that of a take.
    #[n(6)]
    pub identity: Option<FolderIdentity>,
    /// The snapshot whose files are being removed from it. Such a folder is no take's any more.
    #[n(7)]
    pub removing: Option<ContentId>,
    /// When the files were last captured; unknown in records of older versions, and where the system has no boot id.
    #[n(8)]
    pub captured: Option<CaptureTime>,
    /// What else runs in it.
    #[n(9)]
    pub others: Option<Vec<Running>>,
    /// Which folders on the disk its further roots are, by path; unknown in records of older versions.
    #[n(10)]
    pub root_identities: Option<Vec<(String, FolderIdentity)>>,
}

/// When the files of a folder were captured.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CaptureTime {
    /// Names the time between two starts of the system.
    #[n(0)]
    pub boot: String,
    /// The time just before the files were read.
    #[n(1)]
    pub time: Timestamp,
}

/// Which folder of a file system one is, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FolderIdentity {
    /// The device that holds it.
    #[n(0)]
    pub device: u64,
    /// Its number on that device.
    #[n(1)]
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system knows.
    #[n(2)]
    pub born: Option<i64>,
    /// Whether it carries a mark with the folder's id.
    #[n(3)]
    pub marked: bool,
}

/// A tool or a program that was let loose on a folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Running {
    /// For which thread.
    #[n(0)]
    pub thread: ThreadId,
    /// For which take.
    #[n(1)]
    pub take: TakeId,
    /// In which turn; whoever runs it keeps that alive.
    #[n(2)]
    pub turn: TurnId,
    /// Who.
    #[n(3)]
    pub actor: Actor,
    /// The paths below the main root that it is known to write, and no others; `None` if it may write anything.
    #[n(4)]
    pub paths: Option<Vec<ByteVec>>,
}

/// A take that has a folder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Apart {
    /// Of which thread.
    #[n(0)]
    pub thread: ThreadId,
    /// Which take.
    #[n(1)]
    pub take: TakeId,
}

/// A move of files that has begun.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Intent {
    /// The folder whose files move.
    #[n(0)]
    pub folder: FolderId,
    /// Where its roots are, by name.
    #[n(1)]
    pub roots: Vec<(String, String)>,
    /// The files as they were and as they are to be.
    #[n(2)]
    pub files: FileChange,
    /// What is published when they are.
    #[n(3)]
    pub operation: Operation,
    /// What temporary files are named after; no two intents share it.
    #[n(4)]
    pub token: String,
}

impl Running {
    /// The paths that it is known to write.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().flatten().map(|path| path.as_slice())
    }
}

impl FolderRecord {
    /// Everything that runs in it, in the order in which it began.
    pub fn runs(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().chain(self.others.iter().flatten())
    }

    /// The same folder with exactly that running in it.
    #[must_use]
    pub fn with_runs(self, runs: Vec<Running>) -> Self {
        let mut runs = runs.into_iter();
        let running = runs.next();
        let others: Vec<Running> = runs.collect();
        Self { running, others: (!others.is_empty()).then_some(others), ..self }
    }

    /// The path of the main root.
    pub fn path(&self) -> &str {
        self.roots.first().map_or("", |(_, path)| path)
    }
}
