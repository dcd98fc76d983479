//! Errors of changes and reads.

use retake_model::command::CommandError;
use retake_model::id::{FolderId, ThreadId};
use retake_model::name::InvalidNameError;
use retake_model::object::ObjectError;
use retake_model::operation::Version;
use retake_store::{PublishError, StoreError, WriteError};

use crate::FileError;

/// Why a change failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The thread has changed since the caller read it.
    #[error("the thread is at version {current}, not {expected}; read it again and retry")]
    Conflict {
        /// The version that the caller expects.
        expected: Version,
        /// The current version.
        current: Version,
    },
    /// The thread does not exist.
    #[error("there is no thread {}", .0.short())]
    NoSuchThread(ThreadId),
    /// Files are being moved together with this thread.
    #[error("the files of this thread are being moved; try again")]
    Moving(FolderId),
    /// The thread is deleted.
    #[error("this thread is deleted; restore it with `retake thread restore`")]
    ThreadDeleted,
    /// A project always has at least one thread.
    #[error(
        "this is the last thread of the project, and a project always has one; create another with `retake thread new`, \
         or destroy this one with `retake purge`"
    )]
    LastThread,
    /// A turn is running in a take that the change would remove.
    #[error("a turn is running in take {0:?}; wait for it, or end it with `retake stop`")]
    TurnRuns(String),
    /// A command of the thread is running in a folder.
    #[error("a command of this thread is running in {}; wait until it ends", .0.display())]
    CommandRuns(std::path::PathBuf),
    /// Another thread of the project has that title.
    #[error("a thread named {0:?} already exists in this project; choose another name")]
    TitleTaken(String),
    /// The title is invalid.
    #[error(transparent)]
    Title(#[from] InvalidNameError),
    /// Nothing to undo.
    #[error("nothing to undo")]
    NothingToUndo,
    /// Nothing to redo.
    #[error("nothing to redo")]
    NothingToRedo,
    /// The configured undo depth is reached.
    #[error("undo is limited to {0} turns by history.depth; use `retake jump` to go further back")]
    TooDeep(u64),
    /// The version does not exist.
    #[error("there is no version {asked}; the thread has versions 1 to {current}")]
    NoSuchVersion {
        /// The requested version.
        asked: Version,
        /// The current version.
        current: Version,
    },
    /// A jump in a take that is not the active one, to a version at which the take did not exist.
    #[error(
        "take {take:?} did not exist at version {asked}; its first version is {first}. Jump in the project's folder to reach \
         older ones"
    )]
    NoSuchTakeThen {
        /// The name of the take.
        take: String,
        /// The requested version.
        asked: Version,
        /// The version that created the take.
        first: Version,
    },
    /// The command was rejected.
    #[error(transparent)]
    Refused(CommandError),
    /// The files of the move could not be moved.
    #[error(transparent)]
    Files(Box<FileError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The thread does not exist.
    #[error("there is no thread {}", .0.short())]
    NoSuchThread(ThreadId),
    /// The version does not exist.
    #[error("there is no version {asked}; the thread has versions 1 to {current}")]
    NoSuchVersion {
        /// The requested version.
        asked: Version,
        /// The current version.
        current: Version,
    },
    /// The sequence number does not exist yet.
    #[error(
        "there is no event {asked} yet, the last is {last}; the store was replaced or repaired: start again from the last event"
    )]
    NoSuchSequence {
        /// The requested sequence number.
        asked: i64,
        /// The last sequence number.
        last: i64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CommandError> for ChangeError {
    fn from(refusal: CommandError) -> Self {
        match refusal {
            CommandError::Unavailable(unavailable) => Self::Store(unavailable.into()),
            refusal => Self::Refused(refusal),
        }
    }
}

impl From<ObjectError> for ChangeError {
    fn from(unavailable: ObjectError) -> Self {
        Self::Store(unavailable.into())
    }
}

impl From<ObjectError> for ReadError {
    fn from(unavailable: ObjectError) -> Self {
        Self::Store(unavailable.into())
    }
}

impl From<ReadError> for ChangeError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoSuchThread(thread) => Self::NoSuchThread(thread),
            ReadError::NoSuchVersion { asked, current } => Self::NoSuchVersion { asked, current },
            ReadError::Store(error) => Self::Store(error),
            error @ ReadError::NoSuchSequence { .. } => Self::Files(Box::new(error.into())),
        }
    }
}

impl From<PublishError> for ChangeError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Store(error) => Self::Store(error),
            // The operation was built from the head inside the same transaction.
            other => Self::Store(StoreError::Damaged(other.to_string())),
        }
    }
}

impl From<WriteError<ChangeError>> for ChangeError {
    fn from(error: WriteError<ChangeError>) -> Self {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Store(error) => Self::Store(error),
        }
    }
}
