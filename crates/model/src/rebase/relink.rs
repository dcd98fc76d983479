//! The links of operations in their new place: jumps between the sides, and ours with new versions.

use super::branch::BranchLog;
use super::{RebaseError, Writer};
use crate::history::{
    Link, LinkRole, OperationLog, link_change, link_move, link_note, take_position, thread_position,
};
use crate::id::TakeId;
use crate::object::{Objects, load};
use crate::operation::{ChainMoves, ChainPosition, Operation, OperationKind, TakePosition, Version};
use crate::state::ThreadState;

/// Where a jump takes the chains. A chain that is not named stays.
#[derive(Default)]
pub(super) struct Target {
    pub(super) thread: Option<ChainPosition>,
    pub(super) takes: Vec<(TakeId, ChainPosition)>,
}

impl<L: OperationLog<Error: std::error::Error>, O: Objects> Writer<'_, L, O> {
    /// Brings every chain that they moved back to its position after the common operation.
    pub(super) fn jump_to(&mut self, common: &Operation) -> Result<(), RebaseError<L::Error>> {
        let mut target =
            Target { thread: Some(settled(&self.log, common.version, None)?), takes: Vec::new() };
        for take in self.log.moved_takes() {
            target.takes.push((take, settled(&self.log, common.version, Some(take))?));
        }
        self.jump(target, common, common.after, b"jump")
    }

    /// Publishes a jump to these positions; nothing if the thread is there already.
    pub(super) fn jump(
        &mut self,
        target: Target,
        like: &Operation,
        after: crate::content::ContentId,
        purpose: &[u8],
    ) -> Result<(), RebaseError<L::Error>> {
        let head = self.log.head();
        let last = self.log.step(head).map_err(RebaseError::Log)?;
        let now = thread_position(&last, head);
        let moved = |before: ChainPosition, to: ChainPosition| {
            let differs = (before.position, before.tip) != (to.position, to.tip);
            differs.then_some(ChainPosition { changed: before.changed, since: head + 1, ..to })
        };
        let thread = target.thread.and_then(|to| moved(now, to));
        let mut takes = Vec::new();
        for (take, to) in target.takes {
            let before = take_position(&self.log, head, take).map_err(RebaseError::Log)?;
            takes.extend(moved(before, to).map(|at| TakePosition { take, at }));
        }
        if thread.is_none() && takes.is_empty() && after == self.after {
            return Ok(());
        }
        takes.sort_by_key(|moved| moved.take);
        let view = load::<ThreadState>(&self.additions, after)?.active;
        let moves = ChainMoves { thread: thread.unwrap_or(now), takes, order: None };
        let (place, chains) = link_move(&self.log, head, view, moves).map_err(RebaseError::Log)?;
        // A position before the first change of every chain is shown as the first operation.
        let kind = OperationKind::Jumped { from: last.place.position.max(1), to: place.position.max(1) };
        let jump = self.own(kind, after, purpose, like);
        self.append(Operation { place, chains: Some(chains), ..jump })
    }

    /// Appends one of our operations. `mine` is the log that it comes from, and `shift` the difference of versions.
    pub(super) fn republish(
        &mut self,
        operation: &Operation,
        mine: &BranchLog<'_, L>,
        shift: Version,
    ) -> Result<(), RebaseError<L::Error>> {
        let head = self.log.head();
        let renumbered = |version: Version| if version > mine.common { version + shift } else { version };
        let links = match (Link::of(operation).role(), &operation.chains) {
            (_, None) => return Err(RebaseError::OldFormat),
            (LinkRole::Change(take), _) => link_change(&self.log, head, take),
            (LinkRole::Note, _) => link_note(&self.log, head),
            (LinkRole::Move, Some(chains)) => {
                let moved = |at: ChainPosition, now: ChainPosition| ChainPosition {
                    position: renumbered(at.position),
                    tip: renumbered(at.tip),
                    changed: now.changed,
                    since: head + 1,
                    undone: renumbered(at.undone),
                };
                let before = operation.version - 1;
                let step = mine.step(before).map_err(RebaseError::Log)?;
                let last = self.log.step(head).map_err(RebaseError::Log)?;
                let now = thread_position(&last, head);
                let stays = chains.thread == thread_position(&step, before);
                let thread = if stays { now } else { moved(chains.thread, now) };
                let mut takes = Vec::new();
                for TakePosition { take, at } in &chains.takes {
                    let now = take_position(&self.log, head, *take).map_err(RebaseError::Log)?;
                    takes.push(TakePosition { take: *take, at: moved(*at, now) });
                }
                let Some(view) = chains.take else { return Err(RebaseError::OldFormat) };
                let moves = ChainMoves { thread, takes, order: chains.order.clone() };
                link_move(&self.log, head, view, moves)
            }
        };
        let (place, chains) = links.map_err(RebaseError::Log)?;
        let mut operation = Operation { place, chains: Some(chains), ..operation.clone() };
        if let OperationKind::Undone { from, to }
        | OperationKind::Redone { from, to }
        | OperationKind::Jumped { from, to }
        | OperationKind::FilesMoved { from, to, .. } = &mut operation.kind
        {
            (*from, *to) = (renumbered(*from), renumbered(*to));
        }
        self.append(operation)
    }
}

/// The position of a chain after a version. A jump there must not bring redo steps back that a newer change of the other
/// chain in view had cleared.
pub(super) fn settled<L: OperationLog<Error: std::error::Error>>(
    log: &L,
    version: Version,
    take: Option<TakeId>,
) -> Result<ChainPosition, RebaseError<L::Error>> {
    let step = log.step(version).map_err(RebaseError::Log)?;
    let thread = thread_position(&step, version);
    let of_take = match take {
        Some(take) => take,
        None => log.active(version).map_err(RebaseError::Log)?,
    };
    let of_take = take_position(log, version, of_take).map_err(RebaseError::Log)?;
    let (at, beside) = if take.is_some() { (of_take, thread) } else { (thread, of_take) };
    let cleared = beside.changed > at.since;
    Ok(if cleared { ChainPosition { tip: at.position, undone: 0, ..at } } else { at })
}
