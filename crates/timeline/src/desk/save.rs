//! Naming the present version, together with the files that are in the folder.

use std::io::{self, ErrorKind};
use std::path::Path;

use retake_model::id::{TakeId, ThreadId};
use retake_workspace::snapshot::{OpenError, Options};

use super::{Desk, FileError};
use crate::{Caller, Command, Done, Timeline};

impl Timeline {
    /// Saves the present version with the files of the take in `worktree`, or of the active one. Without files only where
    /// none are kept (`files` is `None`) or the folder is missing: any other error is one of the save, since a version that
    /// lacks its files cannot be restored later.
    pub fn save(
        &self,
        thread: ThreadId,
        name: String,
        caller: Caller,
        (files, worktree): (Option<&Options>, Option<TakeId>),
    ) -> Result<Done, FileError> {
        let take = match worktree {
            Some(take) => take,
            None => self.look()?.state(thread)?.active,
        };
        match files.map(|files| Desk::of_take(self, thread, take, files)) {
            Some(Ok(desk)) => desk.save(thread, name, caller),
            Some(Err(error)) if !is_missing_folder(&error) => Err(error),
            Some(Err(_)) | None => Ok(self.change(thread, Command::Save { name }, caller)?),
        }
    }
}

/// Whether there is no folder that files could be kept of. One that cannot be read is there all the same.
fn is_missing_folder(error: &FileError) -> bool {
    match error {
        FileError::NoSuchProject(_)
        | FileError::ProjectForgotten(_)
        | FileError::Open(OpenError::Home { .. } | OpenError::System { .. }) => true,
        FileError::ProjectAway(path) => is_away(path),
        FileError::Open(OpenError::NotAFolder { error, .. }) => is_not_found(error),
        _ => false,
    }
}

/// Whether nothing is at the path of a project, or another folder.
fn is_away(path: &Path) -> bool {
    path.read_dir().map_or_else(|error| is_not_found(&error), |_| true)
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
