//! The thread and take that a command refers to.

use retake_model::id::{TakeId, ThreadId};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::ThreadRow;
use retake_timeline::Reader;

use super::Context;
use crate::arguments::Target;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;

/// The thread and take that a command refers to, with the thread's state.
pub(crate) struct ResolvedTarget {
    pub(crate) thread: ThreadRow,
    pub(crate) state: ThreadState,
    /// The roles offered for new entries.
    pub(crate) roles: Vec<String>,
    pub(crate) take: Take,
}

impl Context {
    /// Finds the named thread, or the current one. Refuses a take, which would be ignored.
    pub(crate) fn thread(&self, reader: &Reader<'_>, named: Option<&str>) -> Result<ThreadRow, Failure> {
        let (thread, take) = self.find_target(reader, named)?;
        match named.filter(|_| take.is_some()) {
            None => Ok(thread),
            Some(text) => {
                let message = format!(
                    "{text:?} names a take, but this command applies to the whole thread; use {}",
                    thread.summary.id.short()
                );
                Err(Failure::new(Code::Usage, message))
            }
        }
    }

    /// The thread and take for an undo or redo: the named take, or the take of the current worktree; `None` for the
    /// active take.
    pub(crate) fn view(
        &self,
        reader: &Reader<'_>,
        target: &Target,
    ) -> Result<(ThreadRow, Option<TakeId>), Failure> {
        let (thread, named) = self.find_target(reader, target.thread.as_deref())?;
        let take = match &target.take {
            Some(text) => Some(reader.find().take(&thread, text)?.summary.id),
            None => named,
        };
        let take = match take {
            None => self.worktree_of(thread.summary.id)?,
            take => take,
        };
        Ok((thread, take))
    }

    /// Resolves the thread and take of a command.
    pub(crate) fn resolve(&self, reader: &Reader<'_>, target: &Target) -> Result<ResolvedTarget, Failure> {
        let (thread, take) = self.view(reader, target)?;
        let state = reader.state(thread.summary.id)?;
        let take = state
            .take(&reader.queries(), take.unwrap_or(state.active))
            .map_err(retake_timeline::ReadError::from)?;
        let take = take.ok_or_else(|| Failure::new(Code::NotFound, "the take was deleted"))?;
        let roles = reader.settings(thread.summary.id).roles()?;
        Ok(ResolvedTarget { thread, state, roles, take })
    }

    /// Fails while a turn or a command is running in one of these threads, since it would keep writing.
    pub(crate) fn check_no_turn(&self, threads: &[ThreadId]) -> Result<(), Failure> {
        let timeline = self.timeline()?;
        let (reader, leases) = (timeline.read()?, timeline.store().turn_leases());
        for thread in threads {
            let row = reader.thread(*thread)?;
            for take in reader.queries().takes_of(row.number)? {
                if leases.is_turn_running(take.summary.id)? {
                    let text = format!(
                        "a turn is running in take {} of {}; stop it with `retake stop` and try again",
                        take.summary.name, row.summary.title
                    );
                    return Err(Failure::new(Code::Refused, text));
                }
            }
            if let Some(folder) = reader.running_command(*thread, &leases)? {
                return Err(retake_timeline::ChangeError::CommandRuns(folder).into());
            }
        }
        Ok(())
    }

    /// The title of the current thread, read from the store.
    pub(crate) fn current_title(&self) -> Option<String> {
        let reader = self.timeline().ok()?.read().ok()?;
        let current = reader.queries().project(self.project().ok()?.id).ok()??.current?;
        reader.thread(current).ok().map(|row| row.summary.title)
    }

    /// The last deleted thread, if the deletion was the last operation in this project and no thread is named.
    pub(crate) fn just_deleted(&self, reader: &Reader<'_>) -> Result<Option<ThreadRow>, Failure> {
        let chosen = environment("RETAKE_THREAD").is_some_and(|text| !text.trim().is_empty());
        if chosen || self.worktree()?.is_some() {
            return Ok(None);
        }
        Ok(reader.project(self.project()?.id).just_deleted()?)
    }

    fn find_target(
        &self,
        reader: &Reader<'_>,
        named: Option<&str>,
    ) -> Result<(ThreadRow, Option<TakeId>), Failure> {
        let project = self.project()?;
        let chosen = environment("RETAKE_THREAD").filter(|text| !text.trim().is_empty());
        if let Some(text) = named.or(chosen.as_deref()) {
            let found = reader.find().thread(Some(project.id), text)?;
            return Ok((found.thread, found.take.map(|take| take.summary.id)));
        }
        let current = project.current.and_then(|id| reader.thread(id).ok());
        match current.filter(|row| row.summary.deleted.is_none()) {
            Some(row) => Ok((row, None)),
            None => Err(no_current_thread()),
        }
    }
}

fn no_current_thread() -> Failure {
    Failure::new(
        Code::NotFound,
        "this project has no current thread; `retake thread new` creates one, `retake thread switch` selects one",
    )
}
