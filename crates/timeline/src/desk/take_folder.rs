//! Resolves the folder of a request from the thread and the take, in one place for all front ends.

use retake_model::id::{TakeId, ThreadId};
use retake_workspace::snapshot::{OpenError, Options};

use super::planning::PlanRequest;
use super::work;
use super::{Desk, FileError, Halves, Handling};
use crate::change::head_of;
use crate::moves::{check_take, view_of};
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
        let looking = self.look()?;
        let state = looking.state(thread)?;
        check_take(&looking.queries(), &state, take)?;
        Ok(match take {
            Some(take) if looking.apart_folder_of(thread, take)?.is_some() => TakeFolder::Worktree,
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
    ) -> Result<Option<Desk>, FileError> {
        let PlanRequest::Change(Command::Branch { from, .. } | Command::Fork { from, .. }) = request else {
            return Ok(None);
        };
        let Some(files) = files else { return Ok(None) };
        match self.look()?.apart_folder_of(thread, *from)? {
            Some(folder) if !folder.is_gone()? => Desk::of_apart(self, &folder, files).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn name_of_take(&self, thread: ThreadId, take: Option<TakeId>) -> Result<String, FileError> {
        let looking = self.look()?;
        let state = looking.state(thread)?;
        let take = state.take(&looking.queries(), take.unwrap_or(state.active))?;
        Ok(take.map(|take| take.name).unwrap_or_default())
    }

    /// The folder whose files a request involves; `None` if it involves only the conversation.
    pub(super) fn folder_for(
        &self,
        thread: ThreadId,
        request: &PlanRequest,
        options: Handling,
        (files, worktree): (Option<&Options>, Option<TakeId>),
    ) -> Result<Option<Desk>, FileError> {
        let needed = matches!(request, PlanRequest::Restore { .. })
            || request.is_of_worktree()
            || options.halves == Halves::Files;
        let Some(files) = files else {
            return if needed { Err(FileError::NotKept) } else { Ok(None) };
        };
        match request {
            PlanRequest::OpenWorktree { .. } => {
                let home = self.look()?.thread(thread)?.home;
                return Desk::of_project(self, home, files).map(Some);
            }
            PlanRequest::CloseWorktree { folder, .. } => {
                let gone = folder.is_gone()?;
                return if gone { Ok(None) } else { Desk::of_apart(self, folder, files).map(Some) };
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
            None => self.look()?.state(thread)?.active,
        };
        match Desk::of_take(self, thread, take, files) {
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
        options: Handling,
        worktree: Option<TakeId>,
    ) -> Result<bool, FileError> {
        let always = matches!(request, PlanRequest::Restore { .. }) || request.is_of_worktree();
        if options.halves == Halves::Conversation {
            return Ok(always);
        }
        Ok(match request {
            PlanRequest::Restore { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => true,
            PlanRequest::Move(goal) => {
                options.halves == Halves::Files
                    || (self.has_files(thread, worktree)?
                        && !self.only_brings_back(thread, *goal, worktree)?)
            }
            PlanRequest::Change(command) => {
                work::may_switch(command) && !self.is_background(thread, command)?
            }
            PlanRequest::Promote { take, .. } => self.look()?.state(thread)?.active == *take,
        })
    }

    fn only_brings_back(
        &self,
        thread: ThreadId,
        goal: Goal,
        worktree: Option<TakeId>,
    ) -> Result<bool, FileError> {
        let looking = self.look()?;
        let (queries, state) = (looking.queries(), looking.state(thread)?);
        let (row, head) = head_of(&queries, thread)?;
        let view = view_of(&queries, thread, &state, worktree)?;
        Ok(goal.only_brings_back(&queries, (row.number, head.version), &state, self.rules, &view)?)
    }
}

/// Returns whether an error means that a thread has no folder for files. A configuration error does not.
fn has_no_folder(error: &FileError) -> bool {
    match error {
        FileError::ProjectAway(_)
        | FileError::NoSuchProject(_)
        | FileError::ProjectForgotten(_)
        | FileError::RootReplaced { .. } => true,
        FileError::Open(error) => {
            matches!(error, OpenError::NotAFolder { .. } | OpenError::Home { .. } | OpenError::System { .. })
        }
        _ => false,
    }
}
