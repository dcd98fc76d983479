//! Plans worktrees: previews and executions use the same decisions.

use retake_model::intent::Apart;
use retake_workspace::folder::path_to_text;
use retake_workspace::snapshot::Observation;
use serde::Serialize;

use super::super::look::Whose;
use super::super::planning::{Basis, Order};
use super::super::{Desk, Executed, FileError, PlanRequest, Preview};
use super::{ClosedApart, OpenedApart};

/// Preview of a change of a worktree.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WorktreePreview {
    /// It would be created; one that was filled before a crash would be taken over.
    Open(OpenedApart),
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
    Opened(OpenedApart),
    /// It was removed; `None` if the folder was missing or replaced.
    Closed(Option<ClosedApart>),
}

impl PlanRequest {
    /// Returns whether a request concerns a worktree.
    pub(in super::super) fn is_of_worktree(&self) -> bool {
        matches!(self, Self::OpenWorktree { .. } | Self::CloseWorktree { .. })
    }
}

impl Order {
    /// Previews a change of a worktree, given the observed files of the plan's folder.
    pub(in super::super) fn preview_worktree(
        &self,
        observed: Option<(&Desk, &Observation)>,
    ) -> Result<Option<WorktreePreview>, FileError> {
        Ok(match (&self.request, observed) {
            (PlanRequest::OpenWorktree { take, folder }, Some((desk, observed))) => {
                let opening = desk.opening((self.thread, *take), folder, &observed.snapshot)?;
                Some(WorktreePreview::Open(opening.opened))
            }
            (PlanRequest::CloseWorktree { folder, remove }, observed) => {
                if let Some((desk, _)) = observed {
                    desk.check_closing(Apart { thread: folder.thread, take: folder.take }, *remove)?;
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
        desk: Option<&Desk>,
        basis: Option<Basis>,
    ) -> Result<Executed, FileError> {
        let changed = match (&self.request, desk) {
            (PlanRequest::OpenWorktree { take, folder }, Some(desk)) => {
                let mut session = desk.begin()?;
                session.expected = basis.and_then(|basis| basis.snapshot);
                let present = session.present(self.thread, &self.caller(basis))?;
                let opening = desk.opening((self.thread, *take), folder, &present.snapshot)?;
                WorktreeChange::Opened(desk.open(opening)?)
            }
            (PlanRequest::CloseWorktree { folder, remove }, Some(desk)) => {
                let apart = Apart { thread: folder.thread, take: folder.take };
                // Under the lock, so that nothing can start in the folder.
                let mut session = desk.begin()?;
                desk.check_closing(apart, *remove)?;
                session.expected = basis.and_then(|basis| basis.snapshot);
                let seen = session.look(self.thread, &self.caller(basis), Whose::Hand)?;
                if *remove {
                    session.remove_files(seen.snapshot)?;
                } else {
                    let id = desk.folder;
                    let store = &desk.timeline.store;
                    store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
                }
                let path = folder.path.clone();
                WorktreeChange::Closed(Some(ClosedApart { seen, path, removed: *remove }))
            }
            (PlanRequest::CloseWorktree { folder, .. }, None) => {
                self.timeline.forget_apart(folder)?;
                WorktreeChange::Closed(None)
            }
            _ => return Err(FileError::NotKept),
        };
        Ok(Executed { worktree: Some(changed), ..Executed::default() })
    }
}

impl Executed {
    /// The created worktree.
    pub fn into_opened(self) -> Result<OpenedApart, FileError> {
        match self.worktree {
            Some(WorktreeChange::Opened(opened)) => Ok(opened),
            _ => Err(FileError::NotApart),
        }
    }

    /// The removed worktree; `None` if its folder was missing or replaced and it was only forgotten.
    pub fn into_closed(self) -> Result<Option<ClosedApart>, FileError> {
        match self.worktree {
            Some(WorktreeChange::Closed(closed)) => Ok(closed),
            _ => Err(FileError::NotApart),
        }
    }
}

impl Preview {
    /// The worktree that would be created.
    pub fn opened(&self) -> Result<OpenedApart, FileError> {
        match &self.worktree {
            Some(WorktreePreview::Open(opened)) => Ok(opened.clone()),
            _ => Err(FileError::NotApart),
        }
    }
}
