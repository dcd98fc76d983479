//! Resolves the folder of a request from the thread and the take, in one place for all front ends.

use retake_model::id::{TakeId, ThreadId};
use retake_workspace::snapshot::{OpenError, Options};

use super::planning::PlanRequest;
use super::resolve_request;
use super::{FileError, MoveOptions, Scope, WorkingCopy};
use crate::write::change::head_of;
use crate::write::moves::{check_take, view_of};
use crate::{Command, Goal, Timeline};

/// Location of a take's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeFolder {
    /// The project's folder: it is the active take.
    Project,
    /// Its worktree.
    Worktree,
    /// No folder.
    None,
}

impl Timeline {
    /// Location of the files of a take; of the active one if `None`.
    pub(super) fn folder_of_take(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
    ) -> Result<TakeFolder, FileError> {
        let reader = self.read()?;
        let state = reader.state(thread)?;
        check_take(&reader.queries(), &state, take)?;
        Ok(match take {
            Some(take) if reader.worktrees().of(thread, take)?.is_some() => TakeFolder::Worktree,
            Some(take) if take != state.active => TakeFolder::None,
            _ => TakeFolder::Project,
        })
    }

    /// The worktree of a new take's source take, if files are captured and it has one.
    pub(super) fn source_worktree(
        &self,
        thread: ThreadId,
        request: &PlanRequest,
        files: Option<&Options>,
    ) -> Result<Option<WorkingCopy>, FileError> {
        let PlanRequest::Change(Command::Branch { from, .. } | Command::Fork { from, .. }) = request else {
            return Ok(None);
        };
        let Some(files) = files else { return Ok(None) };
        match self.read()?.worktrees().of(thread, *from)? {
            Some(folder) if !folder.is_gone()? => WorkingCopy::of_worktree(self, &folder, files).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn name_of_take(&self, thread: ThreadId, take: Option<TakeId>) -> Result<String, FileError> {
        let reader = self.read()?;
        let state = reader.state(thread)?;
        let take = state.take(&reader.queries(), take.unwrap_or(state.active))?;
        Ok(take.map(|take| take.name).unwrap_or_default())
    }

    /// The folder whose files a request involves; `None` if it involves only the conversation.
    pub(super) fn folder_for(
        &self,
        thread: ThreadId,
        request: &PlanRequest,
        options: MoveOptions,
        (files, worktree): (Option<&Options>, Option<TakeId>),
    ) -> Result<Option<WorkingCopy>, FileError> {
        let needed = matches!(request, PlanRequest::Restore { .. })
            || request.is_of_worktree()
            || options.scope == Scope::Files;
        let Some(files) = files else {
            return if needed { Err(FileError::FilesDisabled) } else { Ok(None) };
        };
        match request {
            PlanRequest::OpenWorktree { .. } => {
                let home = self.read()?.thread(thread)?.home;
                return WorkingCopy::of_project(self, home, files).map(Some);
            }
            PlanRequest::CloseWorktree { folder, .. } => {
                let gone = folder.is_gone()?;
                return if gone { Ok(None) } else { WorkingCopy::of_worktree(self, folder, files).map(Some) };
            }
            _ => {}
        }
        if !self.involves_files(thread, request, options, worktree)? {
            return Ok(None);
        }
        // The active take determines the files in the project's folder, wherever the command runs.
        let worktree = if matches!(request, PlanRequest::Change(_)) { None } else { worktree };
        let take = match worktree {
            Some(take) => take,
            None => self.read()?.state(thread)?.active,
        };
        match WorkingCopy::of_take(self, thread, take, files) {
            // A missing or unsuitable folder cannot have files of this thread if the thread never had any.
            Err(error) if has_no_folder(&error) && !needed && !self.has_files(thread, worktree)? => Ok(None),
            other => other.map(Some),
        }
    }

    /// Returns whether a request involves files.
    pub(super) fn involves_files(
        &self,
        thread: ThreadId,
        request: &PlanRequest,
        options: MoveOptions,
        worktree: Option<TakeId>,
    ) -> Result<bool, FileError> {
        let always = matches!(request, PlanRequest::Restore { .. }) || request.is_of_worktree();
        if options.scope == Scope::Conversation {
            return Ok(always);
        }
        Ok(match request {
            PlanRequest::Restore { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => true,
            PlanRequest::Move(goal) => {
                options.scope == Scope::Files
                    || (self.has_files(thread, worktree)?
                        && !self.only_restores_thread(thread, *goal, worktree)?)
            }
            PlanRequest::Change(command) => {
                matches!(command, Command::Merge { .. })
                    || (resolve_request::may_switch(command) && !self.is_background(thread, command)?)
            }
            PlanRequest::Promote { take, .. } => self.read()?.state(thread)?.active == *take,
        })
    }

    fn only_restores_thread(
        &self,
        thread: ThreadId,
        goal: Goal,
        worktree: Option<TakeId>,
    ) -> Result<bool, FileError> {
        let reader = self.read()?;
        let (queries, state) = (reader.queries(), reader.state(thread)?);
        let (row, head) = head_of(&queries, thread)?;
        let view = view_of(&queries, thread, &state, worktree)?;
        Ok(goal.only_restores_thread(&queries, (row.number, head.version), &state, self.rules, &view)?)
    }
}

/// Returns whether an error means that a thread has no folder for files. A configuration error does not.
fn has_no_folder(error: &FileError) -> bool {
    match error {
        FileError::ProjectFolderMissing(_)
        | FileError::NoSuchProject(_)
        | FileError::ProjectForgotten(_)
        | FileError::RootReplaced { .. } => true,
        FileError::Open(error) => {
            matches!(error, OpenError::NotAFolder { .. } | OpenError::Home { .. } | OpenError::System { .. })
        }
        _ => false,
    }
}
