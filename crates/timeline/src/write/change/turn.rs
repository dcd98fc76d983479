//! Determines the turn of a change: that of the typing, command or agent with which it is undone.

use retake_model::history::take_position;
use retake_model::id::{FolderId, TakeId, TurnId};
use retake_model::intent::{FolderRecord, FolderRun};
use retake_model::object::Objects;
use retake_model::operation::{Operation, OperationKind};
use retake_store::WriteTransaction;

use super::Head;
use crate::ChangeError;

/// The last change of a take, if it edited the draft and nothing else happened to the take since.
pub(super) fn previous_typing(
    writing: &WriteTransaction<'_>,
    at: &Head,
    kind: &OperationKind,
    take: Option<TakeId>,
) -> Result<Option<Operation>, ChangeError> {
    let (OperationKind::DraftChanged { .. }, Some(take)) = (kind, take) else { return Ok(None) };
    let (number, head) = (at.row.number, at.last.operation.version);
    let last = take_position(&writing.log(number), head, take)?;
    if last.since != last.position || last.position == 0 {
        return Ok(None);
    }
    Ok(writing.operation(number, last.position)?.map(|found| found.operation))
}

/// The turn of a running command (`retake exec`), if one of its changes is the last step of the changed take,
/// or of the active one for a step of the thread. The change joins that turn, so that the command stays one
/// undo step.
pub(super) fn command_turn(
    writing: &WriteTransaction<'_>,
    at: &Head,
    take: Option<TakeId>,
) -> Result<Option<TurnId>, ChangeError> {
    if at.last.operation.last_file_operation.is_none() {
        return Ok(None);
    }
    let (number, head) = (at.row.number, at.last.operation.version);
    let take = take.unwrap_or(at.state.active);
    let last = take_position(&writing.log(number), head, take)?.position;
    let Some(last) = writing.operation(number, last)?.map(|found| found.operation) else { return Ok(None) };
    let is_run = |run: &FolderRun| run.thread == last.thread && run.take == take && run.turn == last.turn;
    let runs = |folder: &FolderRecord| folder.runs().any(is_run);
    // The active take uses the project's folder, any other one a worktree.
    let joins = if take == at.state.active {
        writing.folder(FolderId::of_project(at.row.home))?.is_some_and(|folder| runs(&folder))
    } else {
        writing.folders()?.iter().any(runs)
    };
    Ok(joins.then_some(last.turn))
}

/// The running turn of the agent in the changed take, or in the active one for a step of the thread.
/// Concurrent changes by the user join that turn: an undo that stopped in the middle of a turn would leave
/// calls without results, and files without the messages about them.
pub(super) fn running_turn(
    writing: &WriteTransaction<'_>,
    at: &Head,
    objects: &impl Objects,
    take: Option<TakeId>,
) -> Result<Option<TurnId>, ChangeError> {
    let id = take.unwrap_or(at.state.active);
    let agent = at.state.take(objects, id)?.and_then(|take| take.agent);
    let Some(agent) = agent.filter(|agent| agent.state.is_running()) else { return Ok(None) };
    // After an undo or jump into the middle of a turn, the rest of it is undone and the turn does not run. A change made
    // there is a step of its own; as a part of the turn, a later redo would go on into it.
    let there = take_position(&writing.log(at.row.number), at.last.operation.version, id)?;
    Ok((there.position == there.tip).then_some(agent.turn))
}
