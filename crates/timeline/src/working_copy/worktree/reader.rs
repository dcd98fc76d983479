//! Reads the worktrees of takes.

use std::path::{Path, PathBuf};

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::intent::{FolderRecord, WorktreeTake};
use retake_store::StoreError;
use retake_workspace::folder::path_from_text;

use super::Worktree;
use crate::{ReadError, Reader};

/// Reads the worktrees of takes.
#[derive(Clone, Copy)]
pub struct WorktreeReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
}

impl WorktreeReader<'_> {
    /// A path next to a project's folder, named after the project and a take; `None` if it has no parent.
    pub fn new_folder(&self, project: ProjectId, take: &str) -> Result<Option<PathBuf>, ReadError> {
        let Some(row) = self.reader.queries().project(project)? else { return Ok(None) };
        let project = path_from_text(&row.path);
        let name = project.file_name().and_then(|name| name.to_str()).unwrap_or("project");
        let plain =
            |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
        let take: String = take.chars().map(plain).collect();
        Ok(project.parent().map(|around| around.join(format!("{name}.{take}"))))
    }

    /// All worktrees.
    pub fn list(&self) -> Result<Vec<Worktree>, ReadError> {
        let folders = self.reader.queries().folders()?;
        let found = folders.into_iter().filter_map(|folder| {
            let WorktreeTake { thread, take } = folder.worktree.filter(|_| folder.removing.is_none())?;
            let path = path_from_text(folder.path());
            let FolderRecord { id, project, identity, .. } = folder;
            Some(Worktree { id, project, thread, take, path, identity })
        });
        Ok(found.collect())
    }

    /// The worktree that contains a path, the innermost if there are several. It is recognised by identity and not by
    /// path, so that it may have been moved.
    pub fn at(&self, path: &Path) -> Result<Option<Worktree>, StoreError> {
        let mut folders = self.list().map_err(|error| match error {
            ReadError::Store(error) => error,
            other => StoreError::Damaged(other.to_string()),
        })?;
        if folders.is_empty() {
            return Ok(None);
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for around in path.ancestors() {
            if let Some(found) = folders.iter().position(|folder| folder.contains(around)) {
                return Ok(Some(Worktree { path: around.to_owned(), ..folders.swap_remove(found) }));
            }
        }
        Ok(None)
    }

    /// The worktree of a take, if it has one.
    pub fn of(&self, thread: ThreadId, take: TakeId) -> Result<Option<Worktree>, ReadError> {
        Ok(self.list()?.into_iter().find(|open| open.thread == thread && open.take == take))
    }
}
