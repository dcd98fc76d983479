//! Opens the working copy of a project or take.
//!
//! ```text
//!   take ──► has it a worktree? ──► yes ──► that folder, alone
//!                               └─► no ───► its thread's project ──► the known folder with its roots, if it still
//!                                                                    belongs to that project
//! ```
//!
//! Used by callers that have the id of a project instead of working in its folder. Another folder may have taken the path;
//! it must not receive the project's files.

use std::path::{Path, PathBuf};

use retake_model::id::{FolderId, ProjectId, TakeId, ThreadId};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace};

use super::{AdditionalRoot, FileError, WorkingCopy, Worktree};
use crate::Timeline;

impl WorkingCopy {
    /// The working copy in a project's own folder, with its additional roots.
    pub fn of_project(timeline: &Timeline, project: ProjectId, options: &Options) -> Result<Self, FileError> {
        let main = timeline.folder_of_project(project)?;
        let others = timeline.read()?.project(project).additional_roots()?;
        others.iter().try_for_each(AdditionalRoot::check_exists)?;
        let others: Vec<(String, PathBuf)> = others.into_iter().map(|root| (root.name, root.path)).collect();
        let workspace = Workspace::open(&main, &others, options.clone())?;
        Ok(Self::at(timeline.clone(), project, workspace))
    }

    /// The working copy with the files of a take: its worktree, or else its project's folder.
    pub fn of_take(
        timeline: &Timeline,
        thread: ThreadId,
        take: TakeId,
        options: &Options,
    ) -> Result<Self, FileError> {
        let reader = timeline.read()?;
        let (worktree, project) = (reader.worktrees().of(thread, take)?, reader.thread(thread)?.home);
        drop(reader);
        match worktree {
            Some(worktree) => Self::of_worktree(timeline, &worktree, options),
            None => Self::of_project(timeline, project, options),
        }
    }

    /// The working copy in a worktree.
    pub fn of_worktree(timeline: &Timeline, folder: &Worktree, options: &Options) -> Result<Self, FileError> {
        let folder = folder.at_present()?;
        let workspace = Workspace::open(&folder.path, &[], options.clone())?;
        Ok(Self::at_worktree(timeline.clone(), &folder, workspace))
    }

    /// The folder, without its additional roots.
    pub fn path(&self) -> &Path {
        &self.workspace.main().path
    }

    /// The id of the folder.
    pub fn folder(&self) -> FolderId {
        self.folder
    }

    /// The project of the folder.
    pub fn project(&self) -> ProjectId {
        self.project
    }
}

impl Timeline {
    /// The folder of a project, if it exists and still belongs to the project.
    pub fn folder_of_project(&self, project: ProjectId) -> Result<PathBuf, FileError> {
        let row = self.read()?.queries().project(project)?.ok_or(FileError::NoSuchProject(project))?;
        if row.path.is_empty() {
            return Err(FileError::ProjectForgotten(project));
        }
        let path = path_from_text(&row.path);
        if self.is_folder_of(&row)? { Ok(path) } else { Err(FileError::ProjectFolderMissing(path)) }
    }
}
