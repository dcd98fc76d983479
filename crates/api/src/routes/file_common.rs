//! What routes about files share: which folder is meant, which moment of it, and paths as clients write them.

use retake_model::id::{TakeId, ThreadId};
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{Desk, FileError, Moments};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::Call;
use crate::problem::{Code, Problem};
use crate::service::Service;

/// A path as a client writes it: as it is shown, `\xNN` for bytes that are no text.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathInput {
    /// The further root that it is in; nothing for the project's own folder.
    #[serde(default)]
    pub(crate) root: String,
    /// The way from there, with slashes.
    pub(crate) path: String,
}

impl PathInput {
    /// The path that it says.
    pub(crate) fn read(&self) -> Result<RootPath, Problem> {
        root_path(Some(&self.root), &self.path)
    }
}

/// A path below a root.
pub(crate) fn root_path(root: Option<&str>, path: &str) -> Result<RootPath, Problem> {
    let found = path.parse::<TreePath>();
    let found = found.map_err(|error| Problem::refused(format!("{path:?} is no path here: {error}")))?;
    Ok(RootPath { root: root.unwrap_or_default().to_owned(), path: found })
}

/// The refusal where files are not kept.
pub(crate) fn not_kept() -> Problem {
    Problem::new(Code::Conflict, "files are not kept here; files.enabled in the configuration turns that on")
}

impl Service {
    /// Where the files of a take are: in its own folder, or in the project's if it is the active one. Never the folder
    /// that the server was started in, unless that is the one.
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

    /// The thread that was named, or else the current one of the server's project.
    pub(crate) fn meant_thread(&self, named: Option<ThreadId>) -> Result<ThreadId, Problem> {
        match named {
            Some(thread) => Ok(self.timeline.look()?.thread(thread)?.summary.id),
            None => self.current_thread(),
        }
    }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// The moments of a thread's files, seen from where the files of a take are.
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
            // Who only looks expects no version: what was changed by hand is recorded all the same.
            let caller = retake_timeline::Caller { expected: None, ..self.caller(thread)? };
            Ok(self.service.desk_at(thread, take)?.look(thread, caller)?.snapshot)
        };
        Ok(Moments::new(&self.service.timeline, row, here, Box::new(look)))
    }
}
