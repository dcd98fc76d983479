//! Saves the current version together with the files in the folder.

use std::io::{self, ErrorKind};
use std::path::Path;

use retake_model::id::{TakeId, ThreadId};
use retake_workspace::snapshot::{OpenError, Options};

use super::{FileError, WorkingCopy};
use crate::{Caller, ChangeOutcome, Command, Timeline};

impl Timeline {
    /// Saves the current version with the files of the take in `worktree`, or of the active one. Saves without files
    /// only if none are captured (`files` is `None`) or the folder is missing: any other error fails the save, since a
    /// version without its files cannot be restored later.
    pub fn save(
        &self,
        thread: ThreadId,
        name: String,
        caller: Caller,
        (files, worktree): (Option<&Options>, Option<TakeId>),
    ) -> Result<ChangeOutcome, FileError> {
        let take = match worktree {
            Some(take) => take,
            None => self.read()?.state(thread)?.active,
        };
        match files.map(|files| WorkingCopy::of_take(self, thread, take, files)) {
            Some(Ok(working_copy)) => working_copy.save(thread, name, caller),
            Some(Err(error)) if !is_missing_folder(&error) => Err(error),
            Some(Err(_)) | None => Ok(self.change(thread, Command::Save { name }, caller)?),
        }
    }
}

/// Returns whether the folder is missing. An unreadable folder exists.
fn is_missing_folder(error: &FileError) -> bool {
    match error {
        FileError::NoSuchProject(_)
        | FileError::ProjectForgotten(_)
        | FileError::Open(OpenError::Home { .. } | OpenError::System { .. }) => true,
        FileError::ProjectFolderMissing(path) => is_missing(path),
        FileError::Open(OpenError::NotAFolder { error, .. }) => is_not_found(error),
        _ => false,
    }
}

/// Returns whether the path of a project is missing or another folder.
fn is_missing(path: &Path) -> bool {
    path.read_dir().map_or_else(|error| is_not_found(&error), |_| true)
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
