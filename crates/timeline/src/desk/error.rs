//! Why files did not move, or could not be looked at.

use std::path::PathBuf;

use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::Unavailable;
use retake_model::path::RootPath;
use retake_store::{StoreError, WriteError};
use retake_workspace::apply::ApplyError;
use retake_workspace::copy::MaterialiseError;
use retake_workspace::snapshot::{OpenError, SnapshotError, StoreTakenError};

use crate::{ChangeError, Done, LookError};

/// Why files were not moved. Neither they nor the conversation were changed, but for what the error itself names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The change of the conversation was refused.
    #[error(transparent)]
    Change(ChangeError),
    /// Something could not be seen.
    #[error(transparent)]
    Look(LookError),
    /// The folder could not be looked at.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The files could not be moved, and were put back.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The files were moving when the disk or the store failed. What was to be done is written down, and whoever
    /// comes next finishes it.
    #[error("the disk or the store failed while files were moving; the next command here finishes the move")]
    Unfinished(#[source] Box<FileError>),
    /// No project has that identity.
    #[error("there is no project {0}; `retake project list` shows those there are")]
    NoSuchProject(ProjectId),
    /// The folder of a project is not where it was.
    #[error(
        "the project's folder is not at {} now (is its disk mounted?). Bring it back; if it was moved, run any \
         `retake` command where it is now",
        .0.display()
    )]
    ProjectAway(PathBuf),
    /// The project was forgotten, and has threads but no folder.
    #[error("project {0} has no folder any more; `retake project adopt {0}` in a folder gives it one")]
    ProjectForgotten(ProjectId),
    /// The folder is not one that files are kept of.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A move of files was cut off, and its folder is not there now.
    #[error(
        "files were being moved in {folder} when something stopped it, and that folder is not there now. Bring it back \
         (is its disk mounted?), and the next command finishes the move. If it is gone for good, \
         `retake repair --forget-folder {folder}` gives the move up",
        folder = .0.display()
    )]
    FolderGone(PathBuf),
    /// A folder that was to be forgotten is there.
    #[error("{} is there, so nothing of it is given up; the next command finishes what was begun", .0.display())]
    FolderThere(PathBuf),
    /// There is nothing to give up.
    #[error("no move of files was cut off in {}", .0.display())]
    NothingMovesThere(PathBuf),
    /// A folder for a take could not be filled.
    #[error(transparent)]
    Copy(#[from] MaterialiseError),
    /// Content was destroyed while the folder was looked at.
    #[error("content was purged while the folder was looked at; try again")]
    Outdated,
    /// There is nothing for the files to do.
    #[error("the files are already as they would be; nothing was changed")]
    NothingMoves,
    /// The files alone were to move with a change of takes.
    #[error(
        "only undo, redo and jump move files alone; `retake restore` brings back the files of any version, and \
         --conversation changes the take without its files"
    )]
    FilesAlone,
    /// The snapshot is not one of this thread's.
    #[error("this thread has no such snapshot; `retake snapshot list` shows those there are")]
    NoSuchSnapshot,
    /// The take has a folder of its own.
    #[error("this take is open apart, in {}; work there, or close it with `retake take close`", .0.display())]
    TakeElsewhere(PathBuf),
    /// The files of the take are in no folder.
    #[error(
        "take {0:?} is not the active one and has no worktree, so the files of these changes are in no folder; switch to \
         it with `retake take switch {0:?}`, open a worktree with `retake take open {0:?} --apart`, or move the \
         conversation alone with --conversation"
    )]
    NoFolder(String),
    /// The take is the one that the project's folder shows.
    #[error(
        "this take is the active one, and its files are in the project's folder; branch or fork it first"
    )]
    TakeHere,
    /// A take would go, or become the active one, while it has a folder of its own.
    #[error(
        "take {take:?} is open apart, in {}; record its last state with `retake take close {take}` first",
        .path.display()
    )]
    TakeApart {
        /// What the take is called.
        take: String,
        /// Its folder.
        path: PathBuf,
    },
    /// A take would become a thread of its own while its files stay where another take's belong.
    #[error(
        "{take:?} is the active take, and its files are in the folder, where those of {heir:?} would belong; \
         bring those with `retake take switch {heir}` first and promote {take:?} by its name, or leave the files \
         as they are with --conversation"
    )]
    FilesWouldStay {
        /// The take that would go.
        take: String,
        /// The take that would be active.
        heir: String,
    },
    /// A path is nowhere.
    #[error("{0} is neither in that snapshot nor in the folder; nothing was changed")]
    NoSuchPath(RootPath),
    /// A path is there, and is not held.
    #[error(
        "{0} is not held ({1}), so that it can neither be restored nor removed; nothing was changed. \
         `retake status` lists what is not held"
    )]
    NotHeld(RootPath, &'static str),
    /// An ignored or secret path whose bytes one side does not have.
    #[error(
        "{0} is ignored or likely a secret, and its bytes at that moment are not kept: they are sealed from the first \
         time that a tool replaces the file. Nothing was changed; restore a moment since then, or use undo"
    )]
    NotSealedThere(RootPath),
    /// The folder that a take was to have is not empty.
    #[error("{} exists already; name another folder, or remove that one", .0.display())]
    InTheWay(PathBuf),
    /// A take's own folder cannot be in the project's, whose files it would become.
    #[error("{} is inside the project's folder; name a folder outside of it", .0.display())]
    InsideProject(PathBuf),
    /// A take's own folder cannot be in another folder that Retake uses.
    #[error("{} is inside {what} at {}; name a folder outside of it", path.display(), other.display())]
    InsideFolder {
        /// The place that was named.
        path: PathBuf,
        /// What holds it.
        what: &'static str,
        /// Where that is.
        other: PathBuf,
    },
    /// A place for a take's own folder cannot be used.
    #[error("{} cannot be used as a folder for the take: {error}; name another", path.display())]
    BadLocation {
        /// The place that was named.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A take's own folder was moved.
    #[error(
        "the folder of this take was moved from {} to {}; run the command there, with `retake -C {}`, or move the folder back",
        from.display(), to.display(), to.display()
    )]
    WorktreeMoved {
        /// Where it was.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// What is at the path of a take's own folder is not that folder.
    #[error(
        "{} is not the folder that Retake filled for this take: that one was moved away, or removed. Move it back, or \
         run the command where it is now; `retake take close TAKE` forgets it, and leaves what is there as it is",
        .0.display()
    )]
    WorktreeReplaced(PathBuf),
    /// What is at the path of a further root is not the folder that was added.
    #[error(
        "the folder that was added to this project as {name} is not at {} now: it was moved, removed or replaced. Move it \
         back, name the folder to use with `retake project root add {name} FOLDER`, or leave it out with \
         `retake project root remove {name}`",
        path.display()
    )]
    RootReplaced {
        /// What the root is called.
        name: String,
        /// Where it was.
        path: PathBuf,
    },
    /// A take's own folder holds another folder that Retake uses, which would be removed with it.
    #[error("{} is inside {}; close or move it first, or close without --remove", inner.display(), outer.display())]
    HoldsAnother {
        /// The folder that is to be removed.
        outer: PathBuf,
        /// The one inside.
        inner: PathBuf,
    },
    /// What would be moved was done in another folder.
    #[error(
        "some of these changes were made to files in another folder, where a take is open apart; go there \
         to move them, or move the conversation alone with --conversation"
    )]
    Elsewhere,
    /// A turn runs in the take whose files are in the folder.
    #[error(
        "a turn is running in take {0:?}, whose files are in this folder; wait for it, or end it with `retake stop`"
    )]
    TurnRuns(String),
    /// The folder has another take's files.
    #[error("the folder has the files of another take now; `retake take switch` brings this one's back")]
    OtherTake,
    /// A tool or a program is at work in the folder.
    #[error("{0} is at work in this folder; wait for it, or end its turn with `retake stop`")]
    Running(String),
    /// A further root of a project shares files with another folder that Retake keeps files of.
    #[error(
        "{} and {} share files, and Retake keeps the files of the latter already; name another folder",
        .root.display(), .other.display()
    )]
    RootTaken {
        /// The root.
        root: PathBuf,
        /// The folder that is kept already.
        other: PathBuf,
    },
    /// A further root of a project holds the store, or is inside it.
    #[error(
        "{} shares files with the store at {}, whose files belong to Retake; name another folder",
        .root.display(), .store.display()
    )]
    RootIsStore {
        /// The root.
        root: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// The folder of a take has no further roots.
    #[error("this is a take's own folder; go to the project's folder to name further ones")]
    RootsApart,
    /// No take lives apart in this folder.
    #[error("no take is open apart in this folder; `retake take list` shows where takes are")]
    NotApart,
    /// The thread or the files changed since the plan was made.
    #[error(
        "the thread or the files changed since the preview, and nothing was done; ask again to see what would happen now"
    )]
    PlanOutdated,
    /// A preview changes nothing, so it cannot finish a move that was interrupted.
    #[error(
        "files in {folder} are being moved, or were when a crash interrupted it, so there is no preview now; try again, \
         or run `retake -C {folder} status`, which finishes an interrupted move",
        folder = .0.display()
    )]
    MoveUnfinished(PathBuf),
    /// Another run may have made the changes.
    #[error(
        "{} changed while another command or tool ran in the folder, or by a thread that this one is a copy of, so it \
         is not this thread's change alone; nothing was done. Look at it with --dry-run, and pass --shared to undo it \
         too (`shared` over HTTP)",
        first_paths(.0)
    )]
    SharedChanges(Vec<RootPath>),
    /// A preview changes nothing, so it cannot restore what a power cut emptied.
    #[error(
        "a power cut emptied files in {folder}, so there is no preview now; `retake -C {folder} status` restores them",
        folder = .0.display()
    )]
    EmptiedFiles(PathBuf),
    /// The thread's files are in another folder.
    #[error(
        "thread {thread} does not belong to {}: its files are in the folder of its own project, and nothing was changed",
        .folder.display()
    )]
    WrongFolder {
        /// The thread.
        thread: ThreadId,
        /// The folder that was to be changed.
        folder: PathBuf,
    },
    /// Files are not kept at all.
    #[error("files are not kept here; files.enabled in the configuration turns that on")]
    NotKept,
    /// The command had nothing to do.
    #[error("there was nothing to do")]
    Unchanged(Box<Done>),
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

impl From<LookError> for FileError {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Store(error) => error.into(),
            error => Self::Look(error),
        }
    }
}

impl From<StoreTakenError> for FileError {
    fn from(error: StoreTakenError) -> Self {
        match error {
            StoreTakenError::Stale => Self::Outdated,
            StoreTakenError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for FileError {
    fn from(error: StoreError) -> Self {
        Self::Change(ChangeError::Store(error))
    }
}

impl From<Unavailable> for FileError {
    fn from(unavailable: Unavailable) -> Self {
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

/// A few of the paths, and how many more there are.
fn first_paths(paths: &[RootPath]) -> String {
    let named: Vec<String> = paths.iter().take(5).map(ToString::to_string).collect();
    match paths.len().saturating_sub(5) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
