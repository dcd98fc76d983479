//! Shared by routes about files: working copies, revisions, and paths.

use retake_model::id::{TakeId, ThreadId};
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{FileError, RevisionResolver, WorkingCopy};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::Call;
use crate::problem::Problem;
use crate::service::Service;

/// A path as the API shows it, with `\xNN` for bytes that are not text.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathInput {
    /// Name of the added root; empty for the project's folder.
    #[serde(default)]
    pub(crate) root: String,
    /// Path below that root, with slashes.
    pub(crate) path: String,
}

impl PathInput {
    pub(crate) fn read(&self) -> Result<RootPath, Problem> {
        root_path(Some(&self.root), &self.path)
    }
}

/// Parses a path below a root.
pub(crate) fn root_path(root: Option<&str>, path: &str) -> Result<RootPath, Problem> {
    let found = path.parse::<TreePath>();
    let found = found.map_err(|error| Problem::refused(format!("invalid path {path:?}: {error}")))?;
    Ok(RootPath { root: root.unwrap_or_default().to_owned(), path: found })
}

pub(crate) fn files_disabled() -> Problem {
    FileError::FilesDisabled.into()
}

impl Service {
    /// The working copy of a take: its worktree, or the project's folder if it is the active take. Does not depend on
    /// the folder that the server was started in.
    pub(crate) fn working_copy_at(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
    ) -> Result<WorkingCopy, Problem> {
        let options = self.agent.setup.files.as_ref().ok_or_else(files_disabled)?;
        let reader = self.timeline.read()?;
        let state = reader.state(thread)?;
        let take = super::common::take_of(&reader, &state, take)?.id;
        let (worktree, home) = (reader.worktrees().of(thread, take)?, reader.thread(thread)?.home);
        drop(reader);
        Ok(match worktree {
            Some(worktree) => WorkingCopy::of_worktree(&self.timeline, &worktree, options)?,
            None if take == state.active => WorkingCopy::of_project(&self.timeline, home, options)?,
            None => return Err(FileError::OtherTake.into()),
        })
    }

    /// The named thread, or the current one of the server's project.
    pub(crate) fn resolve_thread(&self, named: Option<ThreadId>) -> Result<ThreadId, Problem> {
        match named {
            Some(thread) => Ok(self.timeline.read()?.thread(thread)?.summary.id),
            None => self.projects.current_thread(),
        }
    }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// The revisions of a thread's files, where `folder` is the working copy of a take.
    pub(crate) fn revisions(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
    ) -> Result<RevisionResolver<'_, Problem>, Problem> {
        let reader = self.service.timeline.read()?;
        let row = reader.thread(thread)?;
        let here = match take {
            Some(take) => reader.worktrees().of(thread, take)?.map(|worktree| worktree.take),
            None => None,
        };
        drop(reader);
        let look = move || -> Result<_, Problem> {
            let working_copy = self.service.working_copy_at(thread, take)?;
            if let Some(recorded) = self.service.folders.recorded_files(&working_copy, thread)? {
                return Ok(recorded);
            }
            // Reading expects no version, because it records the user's edits in any case.
            let caller = retake_timeline::Caller { expected: None, ..self.caller(thread)? };
            Ok(working_copy.record_changes(thread, caller)?.snapshot)
        };
        Ok(RevisionResolver::new(&self.service.timeline, row, here, Box::new(look)))
    }
}
