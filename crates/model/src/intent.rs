//! Intents: pending file moves in a folder, recorded before the first file changes.
//!
//! ```text
//!   1  intent durable ──► 2  files move, path by path ──► 3  operation published, intent deleted
//!        └── a crash from here on: the next process finishes 2 and does 3
//! ```
//!
//! An intent contains the whole operation, so recovery needs only the store and the folder.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::content::ContentId;
use crate::id::{FolderId, ProjectId, TakeId, ThreadId, TurnId};
use crate::operation::{Actor, FileChange, Operation};
use crate::time::Timestamp;

/// A tracked folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FolderRecord {
    /// Its id: derived from its project, or generated for a worktree.
    #[n(0)]
    pub id: FolderId,
    /// The project it belongs to.
    #[n(1)]
    pub project: ProjectId,
    /// The paths of its roots, by name; the main root has the empty name and comes first.
    #[n(2)]
    pub roots: Vec<(String, String)>,
    /// The last recorded snapshot.
    #[n(3)]
    pub snapshot: Option<ContentId>,
    /// The take whose worktree this is; `None` for the project folder.
    #[n(4)]
    pub worktree: Option<WorktreeTake>,
    /// The current run. Changes during a run are attributed to it, also after a crash.
    #[n(5)]
    pub running: Option<FolderRun>,
    /// The identity on disk of a worktree, because its path alone does not prove that it is the same
    /// folder.
    #[n(6)]
    pub identity: Option<FolderIdentity>,
    /// The snapshot whose files are being removed. Such a folder no longer belongs to a take.
    #[n(7)]
    pub removing: Option<ContentId>,
    /// When the files were last captured; `None` in records of older versions, and on systems without a
    /// boot id.
    #[n(8)]
    pub captured: Option<CaptureTime>,
    /// Further concurrent runs.
    #[n(9)]
    pub other_runs: Option<Vec<FolderRun>>,
    /// The identities of its other roots, by path; `None` in records of older versions.
    #[n(10)]
    pub root_identities: Option<Vec<(String, FolderIdentity)>>,
}

/// When the files of a folder were captured.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CaptureTime {
    /// The system's boot id.
    #[n(0)]
    pub boot: String,
    /// The time directly before the files were read.
    #[n(1)]
    pub time: Timestamp,
}

/// The identity of a folder in a file system, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FolderIdentity {
    /// The device id.
    #[n(0)]
    pub device: u64,
    /// The inode number.
    #[n(1)]
    pub inode: u64,
    /// The creation time in nanoseconds since 1970, if the file system records it.
    #[n(2)]
    pub born: Option<i64>,
    /// Whether the folder carries a marker with its id.
    #[n(3)]
    pub marked: bool,
}

/// A tool or program that is running in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FolderRun {
    /// The thread.
    #[n(0)]
    pub thread: ThreadId,
    /// The take.
    #[n(1)]
    pub take: TakeId,
    /// The turn, which the running process keeps alive.
    #[n(2)]
    pub turn: TurnId,
    /// The actor to which changes are attributed.
    #[n(3)]
    pub actor: Actor,
    /// The only paths below the main root that it writes; `None` if it may write anywhere.
    #[n(4)]
    pub paths: Option<Vec<ByteVec>>,
    /// The command, if it is one and not a tool.
    #[n(5)]
    pub command: Option<RunningCommand>,
}

/// A command that Retake runs for a user.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RunningCommand {
    /// The name of the program, without its arguments, which may contain secrets.
    #[n(0)]
    pub program: String,
    /// The id of the process that waits for it.
    #[n(1)]
    pub process: u32,
}

/// A take with a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WorktreeTake {
    /// The thread.
    #[n(0)]
    pub thread: ThreadId,
    /// The take.
    #[n(1)]
    pub take: TakeId,
}

/// A file move in progress.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Intent {
    /// The folder whose files change.
    #[n(0)]
    pub folder: FolderId,
    /// The paths of its roots, by name.
    #[n(1)]
    pub roots: Vec<(String, String)>,
    /// The files before and after the move.
    #[n(2)]
    pub files: FileChange,
    /// The operation to publish once the files are in place.
    #[n(3)]
    pub operation: Operation,
    /// A unique token in the names of the move's temporary files.
    #[n(4)]
    pub token: String,
}

impl FolderRun {
    /// Iterates over the paths that it is known to write.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().flatten().map(|path| path.as_slice())
    }
}

impl FolderRecord {
    /// Iterates over all runs in the folder, in the order in which they started.
    pub fn runs(&self) -> impl Iterator<Item = &FolderRun> {
        self.running.iter().chain(self.other_runs.iter().flatten())
    }

    /// Returns the folder with exactly these runs.
    #[must_use]
    pub fn with_runs(self, runs: Vec<FolderRun>) -> Self {
        let mut runs = runs.into_iter();
        let running = runs.next();
        let others: Vec<FolderRun> = runs.collect();
        Self { running, other_runs: (!others.is_empty()).then_some(others), ..self }
    }

    /// Returns the path of the main root.
    pub fn path(&self) -> &str {
        self.roots.first().map_or("", |(_, path)| path)
    }
}
