//! Errors of turns.

use retake_model::command::CommandError;
use retake_model::object::ObjectError;
use retake_timeline::StoreError;
use retake_timeline::{ChangeError, FileError, ReadError};

use crate::model_backend::{AttachmentError, BackendError};

/// Why a turn could not start or continue. Published steps stay.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// Another turn is running in the take.
    #[error(
        "a turn is running in this take, in another program; `retake stop` ends it, `retake steer` sends \
         it a message"
    )]
    Busy,
    /// There is no turn to resume.
    #[error("this take has no unfinished turn; start one with `retake run`")]
    Nothing,
    /// The thread has no such take.
    #[error("no such take in this thread; `retake tree` lists them")]
    NoSuchTake,
    /// Another take's files are in the folder.
    #[error(
        "this take is not active, so its files are not in the folder; switch to it, or add a worktree for it, \
         then run the turn"
    )]
    NotActive,
    /// A worktree belongs to one take.
    #[error("this folder is the worktree of one take; retry from the project's folder")]
    InWorktree,
    /// The turn was undone or ended elsewhere while it ran.
    #[error("the turn was undone or ended elsewhere while it ran; it stopped without further changes")]
    Gone,
    /// The conversation does not fit into the context window, even after compression.
    #[error(
        "the conversation has about {tokens} tokens, but {model} accepts only {window}; `retake compress` makes it \
         shorter"
    )]
    TooLong {
        /// Estimated tokens.
        tokens: u64,
        /// Context window in tokens.
        window: u64,
        /// The model.
        model: String,
    },
    /// The start commit of the thread is not checked out.
    #[error(
        "the thread started from commit {short}, and {now} checked out. Nothing was done. To return to it: \
         git switch --detach {start}"
    )]
    OtherCommit {
        /// The start commit.
        start: String,
        /// Its short hash.
        short: String,
        /// The current commit.
        now: String,
    },
    /// The thread started outside of git.
    #[error("the thread did not start in a git repository with a commit")]
    NoStartCommit,
    /// The model does not accept an attachment.
    #[error(transparent)]
    Attachment(#[from] AttachmentError),
    /// The provider cannot be called.
    #[error(transparent)]
    Provider(#[from] BackendError),
    /// The change was refused.
    #[error(transparent)]
    Change(ChangeError),
    /// The files could not be read.
    #[error(transparent)]
    Files(FileError),
    /// Reading the thread failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The folder could not be opened for tools.
    #[error("cannot open the folder for tools: {0}")]
    Folder(#[from] std::io::Error),
}

impl From<ChangeError> for TurnError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(CommandError::TurnGone) => Self::Gone,
            ChangeError::Files(error) => (*error).into(),
            error => Self::Change(error),
        }
    }
}

impl From<FileError> for TurnError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Change(ChangeError::Refused(CommandError::TurnGone)) => Self::Gone,
            FileError::Change(error) => Self::Change(error),
            error => Self::Files(error),
        }
    }
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

impl From<ObjectError> for TurnError {
    fn from(error: ObjectError) -> Self {
        Self::Read(error.into())
    }
}
