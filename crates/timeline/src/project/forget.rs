//! Forgetting which folder a project is in.

use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::FolderRecord;
use retake_store::{Deleted, ProjectRow, SettingScope, StoreError, ThreadFilter, Writing};
use retake_workspace::folder::{self, path_from_text};
use serde::Serialize;

use super::ProjectError;
use crate::Timeline;

/// A project whose folder was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgottenProject {
    /// Its identity.
    pub id: ProjectId,
    /// The folder that it was in.
    pub path: String,
    /// How many threads it has, archived ones included. They are kept, and so is the project if there are any.
    pub threads: u64,
    /// Whether the project is kept without a folder: it has threads, or its threads left prompts, roles or context presets.
    pub kept: bool,
}

impl Timeline {
    /// Forgets which folder a project is in: the folder is no project any more, and no file in it changes. Threads of the
    /// project are kept without a folder until [`Timeline::adopt`] gives them one, and so is whatever its threads shared. A
    /// project that has neither is forgotten altogether.
    pub fn forget_project(&self, id: ProjectId) -> Result<ForgottenProject, ProjectError> {
        let _lock = self.store.lock_folder(FolderId::of_project(id))?;
        let looking = self.look()?;
        let row = looking.queries().project(id)?.ok_or(ProjectError::NoSuchProject(id))?;
        self.check_unused(id)?;
        let filter = ThreadFilter { project: Some(id), deleted: Deleted::Shown, ..ThreadFilter::default() };
        let threads = looking.queries().threads(&filter)?.len() as u64;
        drop(looking);
        let shares = !self.store.shared_settings(SettingScope::Project(id))?.is_empty();
        let path = row.path.clone();
        self.store.write(move |writing: &Writing<'_>| -> Result<(), StoreError> {
            // Counted again where nobody else can write.
            if !shares && writing.threads(&filter)?.is_empty() {
                writing.forget_folder(FolderId::of_project(id))?;
                return writing.forget_project(id);
            }
            let gone = ProjectRow { path: String::new(), device: 0, inode: 0, born: None, ..row };
            writing.put_project(&gone)
        })?;
        // The store no longer knows the folder, so a mark that stays names nothing; it is removed where it can be.
        let _ = folder::unmark(&path_from_text(&path), id);
        Ok(ForgottenProject { id, path, threads, kept: shares || threads > 0 })
    }

    fn is_any_alive(&self, folder: &FolderRecord) -> Result<bool, StoreError> {
        for run in folder.runs() {
            if self.store.is_alive(run.turn)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses to forget a folder that something is being done to.
    fn check_unused(&self, id: ProjectId) -> Result<(), ProjectError> {
        let looking = self.look()?;
        let queries = looking.queries();
        for folder in queries.folders()?.into_iter().filter(|folder| folder.project == id) {
            let path = folder.path();
            let in_use = if queries.intent_on(folder.id)?.is_some() {
                format!("files in {path} were being moved; the next command there finishes that")
            } else if folder.apart.is_some() {
                format!("a take of the project has a folder of its own at {path}; close it first")
            } else if self.is_any_alive(&folder)? {
                format!("a tool is running in {path}; stop it, or wait until it ends")
            } else {
                continue;
            };
            return Err(ProjectError::InUse(in_use));
        }
        Ok(())
    }
}
