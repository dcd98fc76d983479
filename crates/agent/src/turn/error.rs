//! Why a turn could not begin, or could not go on.

use retake_model::command::Refusal;
use retake_model::object::Unavailable;
use retake_timeline::store::StoreError;
use retake_timeline::{ChangeError, FileError, LookError};

use crate::brain::{NotCallable, Unattachable};

/// Why a turn could not begin, or could not go on. What was published before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// Another turn runs in the take.
    #[error(
        "a turn is running in this take, in another program; `retake stop` ends it, `retake steer` tells it \
         something"
    )]
    Busy,
    /// There is nothing to go on with.
    #[error("no turn of this take is unfinished; `retake run` begins one")]
    Nothing,
    /// The thread has no such take.
    #[error("there is no such take in this thread; `retake tree` shows those there are")]
    NoSuchTake,
    /// Another take's files are in the folder.
    #[error(
        "this take is not the one that is being worked on, and its files are not in the folder; switch to it, or \
         give it a folder of its own, then run a turn in it"
    )]
    NotActive,
    /// A take's own folder has room for that take alone.
    #[error("this folder belongs to one take; go to the project's folder to try a message again")]
    Apart,
    /// The turn was undone while it ran, or ended elsewhere.
    #[error("the turn was undone, or ended elsewhere, while it ran; it stopped, and nothing was added since")]
    Gone,
    /// The conversation does not fit into the model, and could not be made to.
    #[error(
        "the conversation has about {tokens} tokens, and {model} takes {window}; `retake compress` makes it \
         shorter"
    )]
    TooLong {
        /// About how many tokens it has.
        tokens: u64,
        /// How many the model takes.
        window: u64,
        /// The model.
        model: String,
    },
    /// Another commit is checked out than the one that the thread started from.
    #[error(
        "the thread started from commit {short}, and {now} checked out. Nothing was done. To return to it: \
         git switch --detach {start}"
    )]
    OtherCommit {
        /// The commit that the thread started from.
        start: String,
        /// The beginning of it.
        short: String,
        /// What is checked out.
        now: String,
    },
    /// The thread started outside of git.
    #[error("the thread did not start in a git repository with a commit")]
    NoStartCommit,
    /// The model cannot be sent what is attached.
    #[error(transparent)]
    Attachment(#[from] Unattachable),
    /// The provider cannot be called at all.
    #[error(transparent)]
    Provider(#[from] NotCallable),
    /// The change was refused.
    #[error(transparent)]
    Change(ChangeError),
    /// The files could not be looked at.
    #[error(transparent)]
    Files(FileError),
    /// Something could not be seen.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The folder could not be opened for tools.
    #[error("the folder could not be opened for tools: {0}")]
    Folder(#[from] std::io::Error),
}

impl From<ChangeError> for TurnError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(Refusal::TurnGone) => Self::Gone,
            ChangeError::Files(error) => (*error).into(),
            error => Self::Change(error),
        }
    }
}

impl From<FileError> for TurnError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Change(ChangeError::Refused(Refusal::TurnGone)) => Self::Gone,
            FileError::Change(error) => Self::Change(error),
            error => Self::Files(error),
        }
    }
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        Self::Look(error.into())
    }
}

impl From<Unavailable> for TurnError {
    fn from(error: Unavailable) -> Self {
        Self::Look(error.into())
    }
}
