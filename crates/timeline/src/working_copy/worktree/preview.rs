//! Plans worktrees: previews and executions use the same decisions.

use retake_model::intent::WorktreeTake;
use retake_workspace::folder::path_to_text;
use retake_workspace::snapshot::Observation;
use serde::Serialize;

use super::super::planning::{Basis, PlannedRequest};
use super::super::record_changes::Attribution;
use super::super::{FileError, PlanOutcome, PlanRequest, Preview, WorkingCopy};
use super::{ClosedWorktree, OpenedWorktree};

/// Preview of a change of a worktree.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WorktreePreview {
    /// It would be created; one that was filled before a crash would be taken over.
    Open(OpenedWorktree),
    /// It would be removed.
    Close {
        /// Current or former path.
        path: String,
        /// Whether the folder is missing or replaced; a replacement is not touched.
        gone: bool,
        /// Whether its recorded files would be deleted.
        removed: bool,
    },
}

/// A change of a worktree.
#[derive(Clone, Debug)]
pub enum WorktreeChange {
    /// It was created.
    Opened(OpenedWorktree),
    /// It was removed; `None` if the folder was missing or replaced.
    Closed(Option<ClosedWorktree>),
}

impl PlanRequest {
    /// Returns whether a request concerns a worktree.
    pub(in super::super) fn is_of_worktree(&self) -> bool {
        matches!(self, Self::OpenWorktree { .. } | Self::CloseWorktree { .. })
    }
}

impl PlannedRequest {
    /// Previews a change of a worktree, given the observed files of the plan's folder.
    pub(in super::super) fn preview_worktree(
        &self,
        observed: Option<(&WorkingCopy, &Observation)>,
    ) -> Result<Option<WorktreePreview>, FileError> {
        Ok(match (&self.request, observed) {
            (PlanRequest::OpenWorktree { take, folder }, Some((working_copy, observed))) => {
                let opening = working_copy.opening((self.thread, *take), folder, &observed.snapshot)?;
                Some(WorktreePreview::Open(opening.opened))
            }
            (PlanRequest::CloseWorktree { folder, remove }, observed) => {
                if let Some((working_copy, _)) = observed {
                    working_copy
                        .check_closing(WorktreeTake { thread: folder.thread, take: folder.take }, *remove)?;
                }
                let (path, gone) = (path_to_text(&folder.path), observed.is_none());
                Some(WorktreePreview::Close { path, gone, removed: *remove && !gone })
            }
            _ => None,
        })
    }

    /// Creates or removes a worktree.
    pub(in super::super) fn change_worktree(
        &self,
        working_copy: Option<&WorkingCopy>,
        basis: Option<Basis>,
    ) -> Result<PlanOutcome, FileError> {
        let changed = match (&self.request, working_copy) {
            (PlanRequest::OpenWorktree { take, folder }, Some(working_copy)) => {
                let mut session = working_copy.begin()?;
                session.expected = basis.and_then(|basis| basis.snapshot);
                let present = session.current_files(self.thread, &self.caller(basis))?;
                let opening = working_copy.opening((self.thread, *take), folder, &present.snapshot)?;
                WorktreeChange::Opened(working_copy.open(opening)?)
            }
            (PlanRequest::CloseWorktree { folder, remove }, Some(working_copy)) => {
                let worktree = WorktreeTake { thread: folder.thread, take: folder.take };
                // Under the lock, so that nothing can start in the folder.
                let mut session = working_copy.begin()?;
                working_copy.check_closing(worktree, *remove)?;
                session.expected = basis.and_then(|basis| basis.snapshot);
                let recorded = session.record_changes(self.thread, &self.caller(basis), Attribution::User)?;
                if *remove {
                    session.remove_files(recorded.snapshot)?;
                } else {
                    let id = working_copy.folder;
                    let store = &working_copy.timeline.store;
                    store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
                }
                let path = folder.path.clone();
                WorktreeChange::Closed(Some(ClosedWorktree { recorded, path, removed: *remove }))
            }
            (PlanRequest::CloseWorktree { folder, .. }, None) => {
                self.timeline.forget_worktree(folder)?;
                WorktreeChange::Closed(None)
            }
            _ => return Err(FileError::FilesDisabled),
        };
        Ok(PlanOutcome { worktree: Some(changed), ..PlanOutcome::default() })
    }
}

impl PlanOutcome {
    /// The created worktree.
    pub fn into_opened(self) -> Result<OpenedWorktree, FileError> {
        match self.worktree {
            Some(WorktreeChange::Opened(opened)) => Ok(opened),
            _ => Err(FileError::NotAWorktree),
        }
    }

    /// The removed worktree; `None` if its folder was missing or replaced and it was only forgotten.
    pub fn into_closed(self) -> Result<Option<ClosedWorktree>, FileError> {
        match self.worktree {
            Some(WorktreeChange::Closed(closed)) => Ok(closed),
            _ => Err(FileError::NotAWorktree),
        }
    }
}

impl Preview {
    /// The worktree that would be created.
    pub fn opened(&self) -> Result<OpenedWorktree, FileError> {
        match &self.worktree {
            Some(WorktreePreview::Open(opened)) => Ok(opened.clone()),
            _ => Err(FileError::NotAWorktree),
        }
    }
}
