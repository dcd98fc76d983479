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

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace};

use super::{ApartFolder, Desk, FileError, FurtherRoot};
use crate::{LookError, Looking, Timeline};

impl Desk {
    /// The working copy in a project's own folder, with its additional roots.
    pub fn of_project(timeline: &Timeline, project: ProjectId, options: &Options) -> Result<Self, FileError> {
        let main = timeline.folder_of_project(project)?;
        let others = timeline.look()?.other_roots(project)?;
        others.iter().try_for_each(FurtherRoot::check_there)?;
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
        let looking = timeline.look()?;
        let (apart, project) = (looking.apart_folder_of(thread, take)?, looking.thread(thread)?.home);
        drop(looking);
        match apart {
            Some(apart) => Self::of_apart(timeline, &apart, options),
            None => Self::of_project(timeline, project, options),
        }
    }

    /// The working copy in a worktree.
    pub fn of_apart(timeline: &Timeline, folder: &ApartFolder, options: &Options) -> Result<Self, FileError> {
        let folder = folder.at_present()?;
        let workspace = Workspace::open(&folder.path, &[], options.clone())?;
        Ok(Self::at_apart(timeline.clone(), &folder, workspace))
    }

    /// The folder, without its additional roots.
    pub fn path(&self) -> &Path {
        &self.workspace.main().path
    }

    /// The project of the folder.
    pub fn project(&self) -> ProjectId {
        self.project
    }
}

impl Timeline {
    /// The folder of a project, if it exists and still belongs to the project.
    pub fn folder_of_project(&self, project: ProjectId) -> Result<PathBuf, FileError> {
        let row = self.look()?.queries().project(project)?.ok_or(FileError::NoSuchProject(project))?;
        if row.path.is_empty() {
            return Err(FileError::ProjectForgotten(project));
        }
        let path = path_from_text(&row.path);
        if self.is_folder_of(&row)? { Ok(path) } else { Err(FileError::ProjectAway(path)) }
    }
}

impl Looking<'_> {
    /// The worktree of a take, if it has one.
    pub fn apart_folder_of(&self, thread: ThreadId, take: TakeId) -> Result<Option<ApartFolder>, LookError> {
        Ok(self.apart_folders()?.into_iter().find(|open| open.thread == thread && open.take == take))
    }
}
