//! The command that undoes a change: `retake undo`, with thread and take if needed.

use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Version;
use retake_timeline::{ChangeOutcome, ReadError};

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

impl Context {
    /// The command that undoes this change, given the current folder.
    pub(crate) fn undo_command(&self, done: &ChangeOutcome) -> String {
        self.undo_command_of(done.thread, done.take, done.version)
    }

    /// The command that undoes the newest change of a take or of the thread.
    pub(crate) fn undo_command_of(&self, thread: ThreadId, take: Option<TakeId>, version: Version) -> String {
        // The change succeeded: failing to compute the hint must not look like a failure.
        self.try_undo_command(thread, take, version).unwrap_or_else(|_| "retake undo".to_owned())
    }

    fn try_undo_command(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
        version: Version,
    ) -> Result<String, Failure> {
        let reader = self.timeline()?.read()?;
        let mut command = "retake undo".to_owned();
        let here = match self.view(&reader, &Target::default()) {
            Ok((row, here)) if row.summary.id == thread => here,
            _ => {
                command = format!("{command} -t {}", thread.short());
                self.worktree_of(thread)?
            }
        };
        if reader.history(thread).in_take(here).next_undo()? != Some(version) {
            let state = reader.state(thread)?;
            let take = state.take(&reader.queries(), take.unwrap_or(state.active));
            if let Some(take) = take.map_err(ReadError::from)? {
                let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
                let name = if take.name.chars().all(is_plain) && !take.name.starts_with('-') {
                    take.name
                } else {
                    take.id.short()
                };
                command = format!("{command} -k {name}");
            }
        }
        Ok(command)
    }
}
