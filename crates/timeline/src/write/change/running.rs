//! Rejects changes that would remove a thread or a take while a turn or a command runs in it.

use std::path::PathBuf;

use retake_model::command::alternatives;
use retake_model::id::{TakeId, ThreadId};
use retake_store::runtime::TurnLeases;
use retake_store::{Queries, StoreError, WriteTransaction};
use retake_workspace::folder::path_from_text;

use super::Head;
use crate::{ChangeError, Command, ReadError, Reader};

/// Rejects a command that would remove or deactivate a take while a turn is running in it.
pub(super) fn check_turns(
    writing: &WriteTransaction<'_>,
    at: &Head,
    leases: &TurnLeases,
    command: &Command,
) -> Result<(), ChangeError> {
    match command {
        Command::Delete => check_no_turn(writing, at, leases, None),
        Command::DeleteTake { take } => check_no_turn(writing, at, leases, Some(*take)),
        Command::Switch { take } if *take != at.state.active => {
            check_no_turn(writing, at, leases, Some(at.state.active))
        }
        Command::Keep { take } => check_kept(writing, at, leases, *take),
        Command::Retry { .. } => check_no_turn(writing, at, leases, Some(at.state.active)),
        _ => Ok(()),
    }
}

/// Rejects keeping a take while a turn is running in the active one or in one that it would delete.
pub(crate) fn check_kept(
    writing: &WriteTransaction<'_>,
    at: &Head,
    leases: &TurnLeases,
    take: TakeId,
) -> Result<(), ChangeError> {
    if take != at.state.active {
        check_no_turn(writing, at, leases, Some(at.state.active))?;
    }
    let Some(kept) = at.state.take(&**writing, take)? else { return Ok(()) };
    for other in alternatives(&**writing, &at.state, &kept)? {
        check_no_turn(writing, at, leases, Some(other.id))?;
    }
    Ok(())
}

/// Rejects removing a take, or all takes of a thread, while a turn is running in it.
///
/// Called inside a write, so that no turn can start in between: a starting turn locks its take before it is recorded.
pub(crate) fn check_no_turn(
    writing: &WriteTransaction<'_>,
    at: &Head,
    leases: &TurnLeases,
    only: Option<TakeId>,
) -> Result<(), ChangeError> {
    for take in writing.takes_of(at.row.number)? {
        let take = take.summary;
        if only.is_none_or(|only| only == take.id) && leases.is_turn_running(take.id)? {
            return Err(ChangeError::TurnRuns(take.name));
        }
    }
    match running_command(writing, at.row.summary.id, only, leases)? {
        Some(folder) => Err(ChangeError::CommandRuns(folder)),
        None => Ok(()),
    }
}

/// The folder in which a command of a thread, or of one of its takes, is running.
fn running_command(
    queries: &Queries<'_>,
    thread: ThreadId,
    only: Option<TakeId>,
    leases: &TurnLeases,
) -> Result<Option<PathBuf>, StoreError> {
    for folder in queries.folders()? {
        for run in folder.runs() {
            let is_meant = run.thread == thread && only.is_none_or(|only| only == run.take);
            if is_meant && leases.is_alive(run.turn)? {
                return Ok(Some(path_from_text(folder.path())));
            }
        }
    }
    Ok(None)
}

impl Reader<'_> {
    /// The folder in which a command of a thread is running.
    pub fn running_command(
        &self,
        thread: ThreadId,
        leases: &TurnLeases,
    ) -> Result<Option<PathBuf>, ReadError> {
        Ok(running_command(&self.queries(), thread, None, leases)?)
    }
}
