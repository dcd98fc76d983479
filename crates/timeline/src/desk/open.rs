//! Which folder a project or a take works in, and the desk there.
//!
//! ```text
//!   take ──► has it a folder of its own? ──► yes ──► that folder, alone
//!                                        └─► no ───► its thread's project ──► the folder that the store knows, if it
//!                                                                             still is that project's, with its roots
//! ```
//!
//! Whoever knows a project by its id and not by standing in its folder comes this way. Another folder may be at the
//! same path by now; no file of the project must get into that one.

use std::path::{Path, PathBuf};

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace};

use super::{ApartFolder, Desk, FileError, FurtherRoot};
use crate::{LookError, Looking, Timeline};

impl Desk {
    /// The timeline at a project's own folder, with the project's further roots.
    pub fn of_project(timeline: &Timeline, project: ProjectId, options: &Options) -> Result<Self, FileError> {
        let main = timeline.folder_of_project(project)?;
        let others = timeline.look()?.other_roots(project)?;
        others.iter().try_for_each(FurtherRoot::check_there)?;
        let others: Vec<(String, PathBuf)> = others.into_iter().map(|root| (root.name, root.path)).collect();
        let workspace = Workspace::open(&main, &others, options.clone())?;
        Ok(Self::at(timeline.clone(), project, workspace))
    }

    /// The timeline where a take's files are: in the folder that the take has for itself, or else in its project's.
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

    /// The timeline at the folder that a take has for itself.
    pub fn of_apart(timeline: &Timeline, folder: &ApartFolder, options: &Options) -> Result<Self, FileError> {
        let folder = folder.at_present()?;
        let workspace = Workspace::open(&folder.path, &[], options.clone())?;
        Ok(Self::at_apart(timeline.clone(), &folder, workspace))
    }

    /// The folder, without its further roots.
    pub fn path(&self) -> &Path {
        &self.workspace.main().path
    }

    /// The project that the folder belongs to.
    pub fn project(&self) -> ProjectId {
        self.project
    }
}

impl Timeline {
    /// The folder of a project, if it is there and still the project's.
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
    /// The folder that a take has for itself, if it has one.
    pub fn apart_folder_of(&self, thread: ThreadId, take: TakeId) -> Result<Option<ApartFolder>, LookError> {
        Ok(self.apart_folders()?.into_iter().find(|open| open.thread == thread && open.take == take))
    }
}
