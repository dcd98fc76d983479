//! Completes moves that a crash interrupted.
//!
//! The intent has the wanted state of each path, and the store has all content, so recovery repeats the move: paths
//! that already moved are as wanted, others are moved now, and paths that match neither state were changed by someone
//! else and stay.

use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use retake_model::id::FolderId;
use retake_model::object::load;
use retake_model::operation::OperationKind;
use retake_model::time::Timestamp;
use retake_model::tree::{Snapshot, SnapshotCursor};
use retake_store::StoredIntent;
use retake_workspace::folder::{path_from_text, path_to_text};
use serde::Serialize;

use super::execute::{end, move_files};
use super::report::{Outcome, PathReport};
use super::roots::replaced_root;
use super::worktree::is_at;
use super::{FileError, WorkingCopy};
use crate::{ChangeError, Timeline};

/// A recovered move.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveredMove {
    /// The requested operation.
    pub kind: OperationKind,
    /// When it was requested.
    pub time: Timestamp,
    /// Whether it was completed; otherwise it was abandoned.
    pub finished: bool,
    /// Outcome of each path.
    pub paths: Vec<PathReport>,
    /// Files of others that could not be returned to their path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
}

/// What was recovered in a folder before the actual request.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Completed moves.
    pub(super) moves: Vec<RecoveredMove>,
    /// Files that a power cut had emptied.
    pub(super) emptied: Vec<PathReport>,
}

impl Recovery {
    pub(super) fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.emptied.is_empty()
    }
}

impl WorkingCopy {
    /// Completes an interrupted move and restores files emptied by a power cut, unless another process is working in
    /// the folder.
    pub(super) fn recover(&self) -> Result<Recovery, FileError> {
        let Some(_lock) = self.timeline.store.try_lock_folder(self.folder)? else {
            return Ok(Recovery::default());
        };
        let moves = recover_locked(&self.timeline, self.folder, Some(self.roots()))?.into_iter().collect();
        Ok(Recovery { moves, emptied: self.restore_emptied()? })
    }
}

impl Timeline {
    /// Completes an interrupted move in a folder, unless another process is working there.
    pub(super) fn recover_unlocked(&self, folder: FolderId) -> Result<Recovery, FileError> {
        let Some(_lock) = self.store.try_lock_folder(folder)? else { return Ok(Recovery::default()) };
        let moves = recover_locked(self, folder, None)?.into_iter().collect();
        Ok(Recovery { moves, emptied: Vec::new() })
    }

    /// Retries until the files that move with a thread are settled. Waits for a process that is moving them, and
    /// completes an interrupted move.
    pub(crate) fn settled<T>(&self, attempt: impl Fn() -> Result<T, ChangeError>) -> Result<T, ChangeError> {
        loop {
            match attempt() {
                Err(ChangeError::Moving(folder)) => {
                    let recovered = recover_folder(self, folder)?;
                    self.recovered_moves().extend(recovered);
                }
                other => return other,
            }
        }
    }

    /// Like `settled`, for requests with files. The attempt locks its own folder and waits for no other: a move in the
    /// worktree of one take only delays work in another take of the thread.
    pub(super) fn settled_files<T>(
        &self,
        attempt: impl Fn() -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        Ok(self.settled(|| Ok(attempt()?))?)
    }

    /// Moves that changes of conversations completed since the last call. Moves of files have them in their own
    /// reports.
    pub fn take_recovered(&self) -> Vec<RecoveredMove> {
        std::mem::take(&mut *self.recovered_moves())
    }

    fn recovered_moves(&self) -> MutexGuard<'_, Vec<RecoveredMove>> {
        self.recovered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Abandons an interrupted move in a folder that is lost: the thread keeps its version, and files that already
    /// moved stay as they are.
    pub fn forget_folder(&self, path: &Path) -> Result<RecoveredMove, FileError> {
        let here = |(_, root): &(String, String)| path_from_text(root) == path;
        let found = self.read()?.queries().intents()?;
        let found = found.into_iter().find(|stored| stored.intent.roots.iter().any(here));
        // A folder that replaced it is not the missing one.
        let there = match &found {
            Some(found) => existing_roots(self, found).is_ok(),
            None => path.is_dir(),
        };
        if there {
            return Err(FileError::FolderExists(path.to_owned()));
        }
        let Some(found) = found else { return Err(FileError::NoPendingMove(path.to_owned())) };
        let StoredIntent { number, intent } = found;
        let folder = intent.folder;
        let _lock = self.store.lock_folder(folder)?;
        self.store.write(move |writing| -> Result<(), FileError> {
            writing.end_intent(number)?;
            // A missing worktree is no longer used.
            if writing.folder(folder)?.is_some_and(|known| known.worktree.is_some()) {
                writing.forget_folder(folder)?;
            }
            Ok(())
        })?;
        let (kind, time) = (intent.operation.kind, intent.operation.time);
        Ok(RecoveredMove { kind, time, finished: false, paths: Vec::new(), aside: Vec::new() })
    }

    /// Completes all interrupted moves, unless another process is doing so.
    pub fn recover(&self) -> Result<Vec<RecoveredMove>, FileError> {
        let folders: Vec<FolderId> =
            self.read()?.queries().intents()?.into_iter().map(|stored| stored.intent.folder).collect();
        let (mut recovered, mut failed) = (Vec::new(), None);
        for folder in folders {
            match self.recover_unlocked(folder) {
                Ok(found) => recovered.extend(found.moves),
                // It waits for its folder, or to be abandoned.
                Err(FileError::FolderGone(_)) => {}
                // Other folders are independent of this one.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => {
                self.recovered_moves().extend(recovered);
                Err(error)
            }
            None => Ok(recovered),
        }
    }
}

/// Waits until no process moves files in a folder, and completes an interrupted move there.
fn recover_folder(timeline: &Timeline, folder: FolderId) -> Result<Option<RecoveredMove>, ChangeError> {
    let _lock = timeline.store.lock_folder(folder)?;
    Ok(recover_locked(timeline, folder, None)?)
}

/// Completes an interrupted move in a locked folder.
pub(super) fn recover_locked(
    timeline: &Timeline,
    folder: FolderId,
    roots: Option<Vec<(String, String)>>,
) -> Result<Option<RecoveredMove>, FileError> {
    let found = timeline.read()?.queries().intent_for_folder(folder)?;
    let Some(mut intent) = found else { return Ok(None) };
    // The folder may have been moved since.
    intent.intent.roots = match roots {
        Some(roots) => roots,
        None => existing_roots(timeline, &intent)?,
    };
    let (kind, time) = (intent.intent.operation.kind.clone(), intent.intent.operation.time);
    check_roots(timeline, folder, &intent.intent.roots)?;
    let applied = move_files(timeline, &intent)?;
    let files = intent.intent.files;
    end(timeline, intent, &applied)?;
    let reader = timeline.read()?;
    let queries = reader.queries();
    let (before, after): (Snapshot, Snapshot) = (load(&queries, files.before)?, load(&queries, files.after)?);
    let mut paths = Vec::new();
    let (mut before, mut after) = (SnapshotCursor::new(&before), SnapshotCursor::new(&after));
    for (path, outcome) in applied.paths.into_iter().filter(|(_, outcome)| *outcome != Outcome::Unchanged) {
        let (before, after) = (before.get(&queries, &path)?, after.get(&queries, &path)?);
        paths.push(PathReport { path, outcome, note: None, after, before });
    }
    Ok(Some(RecoveredMove { kind, time, finished: true, paths, aside: applied.aside }))
}

/// Current paths of an intent's roots. A missing or replaced folder may return: a disk that is not mounted has a
/// partial move, and only the user can know that it will not return.
pub(super) fn existing_roots(
    timeline: &Timeline,
    stored: &StoredIntent,
) -> Result<Vec<(String, String)>, FileError> {
    let mut roots = stored.intent.roots.clone();
    let record = timeline.read()?.queries().folder(stored.intent.folder)?;
    if let (Some(record), Some((_, main))) = (record, roots.first_mut()) {
        let path = path_from_text(main);
        if record.worktree.is_some() {
            let now = path_from_text(record.path());
            if record.identity.is_some_and(|known| !is_at(&known, record.id, &now, true)) {
                return Err(FileError::FolderGone(path));
            }
            *main = path_to_text(&now);
        } else {
            // A project that was moved is recorded at its new path, like a worktree.
            *main = match timeline.folder_of_project(record.project) {
                Ok(path) => path_to_text(&path),
                Err(FileError::ProjectFolderMissing(path)) => return Err(FileError::FolderGone(path)),
                Err(FileError::ProjectForgotten(_)) => return Err(FileError::FolderGone(path)),
                // A library may use a project that was never recorded: only the path identifies its folder.
                Err(FileError::NoSuchProject(_)) => path_to_text(&path),
                Err(error) => return Err(error),
            };
        }
    }
    check_roots(timeline, stored.intent.folder, &roots)?;
    Ok(roots)
}

/// Rejects missing roots, and additional roots that were replaced.
fn check_roots(timeline: &Timeline, folder: FolderId, roots: &[(String, String)]) -> Result<(), FileError> {
    let record = timeline.read()?.queries().folder(folder)?;
    let mut paths = roots.iter().map(|(_, path)| path_from_text(path));
    let gone = paths.find(|path| !path.is_dir()).or_else(|| replaced_root(&record?, roots));
    gone.map_or(Ok(()), |gone| Err(FileError::FolderGone(gone)))
}
