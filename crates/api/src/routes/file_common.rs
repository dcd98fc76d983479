//! Shared by routes about files: working copies, revisions, and paths.

use retake_model::id::{TakeId, ThreadId};
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{Desk, FileError, Moments};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::Call;
use crate::problem::{Code, Problem};
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

pub(crate) fn not_kept() -> Problem {
    Problem::new(Code::Conflict, "file recording is off; set files.enabled in the configuration")
}

impl Service {
    /// The working copy of a take: its worktree, or the project's folder if it is the active take. Does not depend on
    /// the folder that the server was started in.
    pub(crate) fn desk_at(&self, thread: ThreadId, take: Option<TakeId>) -> Result<Desk, Problem> {
        let options = self.setup.files.as_ref().ok_or_else(not_kept)?;
        let looking = self.timeline.look()?;
        let state = looking.state(thread)?;
        let take = super::common::take_of(&looking, &state, take)?.id;
        let (apart, home) = (looking.apart_folder_of(thread, take)?, looking.thread(thread)?.home);
        drop(looking);
        Ok(match apart {
            Some(apart) => Desk::of_apart(&self.timeline, &apart, options)?,
            None if take == state.active => Desk::of_project(&self.timeline, home, options)?,
            None => return Err(FileError::OtherTake.into()),
        })
    }

    /// The named thread, or the current one of the server's project.
    pub(crate) fn meant_thread(&self, named: Option<ThreadId>) -> Result<ThreadId, Problem> {
        match named {
            Some(thread) => Ok(self.timeline.look()?.thread(thread)?.summary.id),
            None => self.current_thread(),
        }
    }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// The revisions of a thread's files, where `folder` is the working copy of a take.
    pub(crate) fn moments(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
    ) -> Result<Moments<'_, Problem>, Problem> {
        let looking = self.service.timeline.look()?;
        let row = looking.thread(thread)?;
        let here = match take {
            Some(take) => looking.apart_folder_of(thread, take)?.map(|apart| apart.take),
            None => None,
        };
        drop(looking);
        let look = move || -> Result<_, Problem> {
            // Reading expects no version, because it records the user's edits in any case.
            let caller = retake_timeline::Caller { expected: None, ..self.caller(thread)? };
            Ok(self.service.desk_at(thread, take)?.look(thread, caller)?.snapshot)
        };
        Ok(Moments::new(&self.service.timeline, row, here, Box::new(look)))
    }
}
