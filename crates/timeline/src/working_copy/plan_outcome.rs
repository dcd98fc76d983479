//! The outcome of a plan.

use retake_store::StoreError;

use super::report::FileReport;
use super::{FileError, RestoreOutcome, WorktreeChange};
use crate::{ChangeOutcome, HistoryMove, PromoteOutcome};

/// The outcome of a plan.
#[derive(Clone, Debug, Default)]
pub struct PlanOutcome {
    /// The operation; `None` if nothing changed.
    pub done: Option<ChangeOutcome>,
    /// The state of the thread after an undo, redo or jump.
    pub moved: Option<HistoryMove>,
    /// The new thread of a promoted take.
    pub promoted: Option<ChangeOutcome>,
    /// The changes of files; `None` if only the conversation was involved.
    pub files: Option<FileReport>,
    /// The change of a worktree, if requested.
    pub worktree: Option<WorktreeChange>,
}

impl PlanOutcome {
    /// The outcome for both threads of a promotion.
    pub fn into_promoted(self) -> Result<PromoteOutcome, FileError> {
        match (self.done, self.promoted) {
            (Some(source), Some(promoted)) => Ok(PromoteOutcome { source, promoted }),
            _ => Err(StoreError::Damaged("a promotion left no thread".to_owned()).into()),
        }
    }

    /// The outcome of a restore.
    pub fn into_restored(self) -> Result<RestoreOutcome, FileError> {
        let files = self.files.ok_or(FileError::FilesDisabled)?;
        Ok(RestoreOutcome { done: self.done, files })
    }

    pub(super) fn done(done: Option<ChangeOutcome>, files: Option<FileReport>) -> Self {
        Self { done, files, ..Self::default() }
    }

    pub(super) fn moved(moved: HistoryMove, files: Option<FileReport>) -> Self {
        Self { done: Some(moved.done.clone()), moved: Some(moved), files, ..Self::default() }
    }

    pub(super) fn promoted(promoted: PromoteOutcome) -> Self {
        let PromoteOutcome { source, promoted } = promoted;
        Self { done: Some(source), promoted: Some(promoted), ..Self::default() }
    }
}
