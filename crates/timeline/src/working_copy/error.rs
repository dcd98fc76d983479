//! Errors of moves of files.

use std::path::PathBuf;

use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::ObjectError;
use retake_model::path::{RootPath, TreePath};
use retake_store::{StoreError, WriteError};
use retake_workspace::apply::{ApplyError, SkipReason, describe_skipped};
use retake_workspace::copy::MaterialiseError;
use retake_workspace::snapshot::{OpenError, SnapshotError, StoreSnapshotError};

use crate::{ChangeError, ChangeOutcome, ReadError};

/// Why files were not moved. Neither files nor conversation changed, except as the error states.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The change of the conversation was rejected.
    #[error(transparent)]
    Change(ChangeError),
    /// Reading failed.
    #[error(transparent)]
    Read(ReadError),
    /// The folder could not be captured.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The files could not be moved, and were rolled back.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The disk or the store failed during the move. The intent is durable, and the next command completes it.
    #[error("the disk or the store failed while files were moving; the next command here finishes the move")]
    Unfinished(#[source] Box<FileError>),
    /// The project does not exist.
    #[error("project {0} does not exist; `retake project list` shows all projects")]
    NoSuchProject(ProjectId),
    /// The folder of the project is missing.
    #[error(
        "the project's folder is missing at {} (is its disk mounted?). Restore it, or, if it was moved, run any \
         `retake` command at its new path",
        .0.display()
    )]
    ProjectFolderMissing(PathBuf),
    /// The project was forgotten; it has threads but no folder.
    #[error("project {0} has no folder; run `retake project adopt {0}` in the folder to use")]
    ProjectForgotten(ProjectId),
    /// The folder cannot be a workspace.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A move was interrupted, and its folder is missing.
    #[error(
        "a move of files in {folder} was interrupted, and that folder is missing. Restore it (is its disk mounted?), and \
         the next command completes the move. If it is lost, `retake repair --forget-folder {folder}` abandons \
         the move",
        folder = .0.display()
    )]
    FolderGone(PathBuf),
    /// A folder that should be forgotten exists.
    #[error("{} exists, so it is not forgotten; the next command completes the interrupted move", .0.display())]
    FolderExists(PathBuf),
    /// There is no interrupted move to forget.
    #[error("no interrupted move of files in {}", .0.display())]
    NoPendingMove(PathBuf),
    /// A worktree could not be filled.
    #[error(transparent)]
    Copy(#[from] MaterialiseError),
    /// Content was erased while the folder was captured.
    #[error("content was purged or redacted while the folder was captured; try again")]
    Outdated,
    /// No file would change.
    #[error("no file would change; nothing was done")]
    NothingMoves,
    /// A change of takes cannot move only the files.
    #[error(
        "only undo, redo and jump can move just the files; use `retake restore` for the files of any version, or \
         --conversation to change the take without its files"
    )]
    FilesOnlyUnsupported,
    /// The snapshot does not belong to this thread.
    #[error("this thread has no such snapshot; `retake snapshot list` shows all snapshots")]
    NoSuchSnapshot,
    /// The take has a worktree.
    #[error("this take has a worktree in {}; work there, or remove it with `retake worktree remove`", .0.display())]
    TakeInWorktree(PathBuf),
    /// The files of the take are in no folder.
    #[error(
        "take {0:?} is not the active one and has no worktree, so the files of these changes are in no folder; switch to \
         it with `retake take switch {0:?}`, add a worktree with `retake worktree add {0:?} DIR`, or move only \
         the conversation with --conversation"
    )]
    NoFolder(String),
    /// Two takes were not forked from each other, nor from the same take.
    #[error(
        "takes {one:?} and {other:?} have no common fork, or the takes between them were deleted, so their files cannot be \
         merged; merge only the conclusion with --conversation"
    )]
    NoCommonFork {
        /// The name of one.
        one: String,
        /// The name of the other.
        other: String,
    },
    /// The take is the active one.
    #[error(
        "this take is the active one, and its files are in the project's folder; branch or fork it first"
    )]
    TakeIsActive,
    /// A take with a worktree would be removed or become active.
    #[error(
        "take {take:?} has a worktree in {}; run `retake worktree remove {take}` first, which records its last changes",
        .path.display()
    )]
    TakeHasWorktree {
        /// Name of the take.
        take: String,
        /// Its worktree.
        path: PathBuf,
    },
    /// The files of a promoted take would stay where those of another take belong.
    #[error(
        "{take:?} is the active take, and its files are in the folder, where those of {next_active:?} would belong; \
         run `retake take switch {next_active}` first and promote {take:?} by its name, or keep the current files with \
         --conversation"
    )]
    FilesWouldStay {
        /// The promoted take.
        take: String,
        /// The take that would become active.
        next_active: String,
    },
    /// The path does not exist anywhere.
    #[error("{0} is neither in that snapshot nor in the folder; nothing was changed")]
    NoSuchPath(RootPath),
    /// The path exists, but is excluded.
    #[error(
        "{0} is excluded ({1}) and can neither be restored nor removed; nothing was changed. \
         `retake status` lists excluded paths"
    )]
    PathExcluded(RootPath, &'static str),
    /// An ignored or secret path whose bytes are not available.
    #[error(
        "{0} is ignored or likely a secret, and its bytes at that version are not available: they are sealed from the \
         first time that a tool replaces the file. Nothing was changed; restore a later version, or use undo"
    )]
    NotSealedAtVersion(RootPath),
    /// The path of a new worktree exists.
    #[error("{} already exists; name another folder, or remove that one", .0.display())]
    PathExists(PathBuf),
    /// A worktree cannot be inside the project's folder.
    #[error("{} is inside the project's folder; name a folder outside of it", .0.display())]
    InsideProject(PathBuf),
    /// A worktree cannot be inside another folder of Retake.
    #[error("{} is inside {what} at {}; name a folder outside of it", path.display(), other.display())]
    InsideFolder {
        /// The requested path.
        path: PathBuf,
        /// The containing folder.
        what: &'static str,
        /// Its path.
        other: PathBuf,
    },
    /// The path cannot be used for a worktree.
    #[error("{} cannot be used as a folder for the take: {error}; name another", path.display())]
    BadLocation {
        /// The requested path.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The folder of a worktree was moved.
    #[error(
        "the worktree was moved from {} to {}; run the command there, with `retake -C {}`, or move the folder back",
        from.display(), to.display(), to.display()
    )]
    WorktreeMoved {
        /// The old path.
        from: PathBuf,
        /// The new path.
        to: PathBuf,
    },
    /// Another folder is at the path of a worktree.
    #[error(
        "{} is not the worktree of this take, which was moved or removed. Move it back, or run the command at its new \
         path; `retake worktree remove TAKE` forgets the worktree and does not touch the current folder",
        .0.display()
    )]
    WorktreeReplaced(PathBuf),
    /// Another folder is at the path of an additional root.
    #[error(
        "the root {name} of this project is not at {}: it was moved, removed or replaced. Move it back, name the folder \
         to use with `retake project root add {name} FOLDER`, or remove the root with \
         `retake project root remove {name}`",
        path.display()
    )]
    RootReplaced {
        /// Name of the root.
        name: String,
        /// Its path.
        path: PathBuf,
    },
    /// A worktree contains another folder of Retake, which would be deleted with it.
    #[error("{} is inside {}; remove or move it first, or omit --delete-files to keep the files", inner.display(), outer.display())]
    ContainsFolder {
        /// The folder to delete.
        outer: PathBuf,
        /// The inner folder.
        inner: PathBuf,
    },
    /// The system denies the deletion of files in a worktree, so that none was deleted.
    #[error(
        "nothing was deleted in {}, and it is still the worktree: cannot delete {}. Make these paths deletable and repeat \
         the command, or omit --delete-files to keep the files",
        folder.display(), describe_skipped(skipped)
    )]
    FilesNotDeleted {
        /// The worktree.
        folder: PathBuf,
        /// The paths, with the reasons.
        skipped: Vec<(TreePath, SkipReason)>,
    },
    /// The changes were made in another folder.
    #[error(
        "some of these changes were made in a worktree; run the command there, or move only the conversation \
         with --conversation"
    )]
    Elsewhere,
    /// Changes of a worktree's take were made in the project's folder.
    #[error(
        "some of these changes were made in the project's folder, before take {0:?} had this worktree; remove the worktree \
         with `retake worktree remove`, switch to the take there and repeat this, or move only the conversation with \
         --conversation"
    )]
    InProjectFolder(String),
    /// A turn is running in the take whose files are in the folder.
    #[error(
        "a turn is running in take {0:?}, whose files are in this folder; wait for it, or end it with `retake stop`"
    )]
    TurnRuns(String),
    /// The folder has the files of another take.
    #[error("the folder has the files of another take; restore those of this one with `retake take switch`")]
    OtherTake,
    /// A tool or program is running in the folder.
    #[error("{0} is running in this folder; wait for it, or end its turn with `retake stop`")]
    Running(String),
    /// A command of `retake exec` is running in the folder.
    #[error(
        "{program:?} of `retake exec` (process {process}) is running in this folder; wait for it, or end that process"
    )]
    CommandRuns {
        /// The program.
        program: String,
        /// The process that waits for it.
        process: u32,
    },
    /// An additional root overlaps with another folder of Retake.
    #[error(
        "{} and {} share files, and Retake already captures the latter; name another folder",
        .root.display(), .other.display()
    )]
    RootTaken {
        /// The root.
        root: PathBuf,
        /// The other folder.
        other: PathBuf,
    },
    /// An additional root overlaps with the store.
    #[error(
        "{} overlaps with the store at {}; name another folder",
        .root.display(), .store.display()
    )]
    RootIsStore {
        /// The root.
        root: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// A worktree has no additional roots.
    #[error("this is a worktree; add roots in the project's folder")]
    RootsInWorktree,
    /// The folder is not a worktree.
    #[error("this folder is not a worktree; `retake worktree list` shows all worktrees")]
    NotAWorktree,
    /// The thread or the files changed since the plan was made.
    #[error("the thread or the files changed since the preview, and nothing was done; request a new preview")]
    PlanOutdated,
    /// A preview changes nothing, so it cannot complete an interrupted move.
    #[error(
        "files in {folder} are being moved, or the move was interrupted, so a preview is not possible; try again, \
         or run `retake -C {folder} status`, which completes an interrupted move",
        folder = .0.display()
    )]
    MoveUnfinished(PathBuf),
    /// Another run may have made the changes.
    #[error(
        "{} may have been changed by others too: another command or tool ran in the folder, was killed there, or \
         the change comes from a thread of which this one is a copy. Nothing was done. Preview it with --dry-run, and pass \
         --shared to undo it too (`shared` over HTTP)",
        first_paths(.0)
    )]
    SharedChanges(Vec<RootPath>),
    /// A preview changes nothing, so it cannot restore files that a power cut emptied.
    #[error(
        "a power cut emptied files in {folder}, so a preview is not possible; `retake -C {folder} status` restores them",
        folder = .0.display()
    )]
    EmptiedFiles(PathBuf),
    /// The files of the thread are in another folder.
    #[error(
        "thread {thread} does not belong to {}: its files are in its own project's folder; nothing was changed",
        .folder.display()
    )]
    WrongFolder {
        /// The thread.
        thread: ThreadId,
        /// The requested folder.
        folder: PathBuf,
    },
    /// Files are not captured.
    #[error("file recording is off; turn it on with `retake config set files.enabled true`")]
    FilesDisabled,
    /// The command changed nothing.
    #[error("nothing to do")]
    Unchanged(Box<ChangeOutcome>),
}

impl From<ChangeError> for FileError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Files(error) => *error,
            error => Self::Change(error),
        }
    }
}

impl From<FileError> for ChangeError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Change(error) => error,
            error => Self::Files(Box::new(error)),
        }
    }
}

impl From<ReadError> for FileError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            error => Self::Read(error),
        }
    }
}

impl From<StoreSnapshotError> for FileError {
    fn from(error: StoreSnapshotError) -> Self {
        match error {
            StoreSnapshotError::Stale => Self::Outdated,
            StoreSnapshotError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for FileError {
    fn from(error: StoreError) -> Self {
        Self::Change(ChangeError::Store(error))
    }
}

impl From<ObjectError> for FileError {
    fn from(unavailable: ObjectError) -> Self {
        StoreError::from(unavailable).into()
    }
}

impl From<WriteError<FileError>> for FileError {
    fn from(error: WriteError<FileError>) -> Self {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Store(error) => error.into(),
        }
    }
}

/// Some of the paths, and the number of the rest.
fn first_paths(paths: &[RootPath]) -> String {
    let named: Vec<String> = paths.iter().take(5).map(ToString::to_string).collect();
    match paths.len().saturating_sub(5) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
