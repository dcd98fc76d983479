//! Forgets the folder of a project.

use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::FolderRecord;
use retake_store::{DeletedFilter, ProjectRow, SettingScope, StoreError, ThreadFilter, WriteTransaction};
use retake_workspace::folder::{self, path_from_text};
use serde::Serialize;

use super::ProjectError;
use crate::Timeline;

/// A project without a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgottenProject {
    /// The project.
    pub id: ProjectId,
    /// Its former folder.
    pub path: String,
    /// Number of its threads, including deleted ones. They remain, and with them the project.
    pub threads: u64,
    /// Whether the project remains without a folder: it has threads, or shared prompts, roles or context presets.
    pub kept: bool,
}

impl Timeline {
    /// Forgets the folder of a project: it is no longer a project, and no file in it changes. Threads and shared
    /// settings remain until [`Timeline::adopt`] assigns a folder. A project that has neither is removed.
    pub fn forget_project(&self, id: ProjectId) -> Result<ForgottenProject, ProjectError> {
        let _lock = self.store.lock_folder(FolderId::of_project(id))?;
        let reader = self.read()?;
        let row = reader.queries().project(id)?.ok_or(ProjectError::NoSuchProject(id))?;
        self.check_unused(id)?;
        let filter =
            ThreadFilter { project: Some(id), deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let threads = reader.queries().threads(&filter)?.len() as u64;
        drop(reader);
        let shares = !self.store.shared_settings(SettingScope::Project(id))?.is_empty();
        let path = row.path.clone();
        self.store.write(move |writing: &WriteTransaction<'_>| -> Result<(), StoreError> {
            // Counted again inside the write, where no other process can add threads.
            if !shares && writing.threads(&filter)?.is_empty() {
                writing.forget_folder(FolderId::of_project(id))?;
                return writing.forget_project(id);
            }
            let gone = ProjectRow { path: String::new(), device: 0, inode: 0, born: None, ..row };
            writing.put_project(&gone)
        })?;
        // The store no longer knows the folder, so that a remaining mark has no effect; it is removed if possible.
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

    /// Rejects forgetting a folder in use.
    fn check_unused(&self, id: ProjectId) -> Result<(), ProjectError> {
        let reader = self.read()?;
        let queries = reader.queries();
        for folder in queries.folders()?.into_iter().filter(|folder| folder.project == id) {
            let path = folder.path();
            let in_use = if queries.intent_for_folder(folder.id)?.is_some() {
                format!("a move of files in {path} was interrupted; the next command there finishes it")
            } else if folder.worktree.is_some() {
                format!(
                    "a take of the project has a worktree at {path}; remove it with `retake worktree remove` first"
                )
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
