//! Undo, redo and jump. Each is one operation, however many steps it goes.

use retake_model::history::{self, Move, Unit};
use retake_model::id::ThreadId;
use retake_model::operation::{OperationKind, Place, Version};
use retake_store::Writing;
use serde::Serialize;

use crate::change::{Head, publish_move};
use crate::promote::follow;
use crate::{Caller, ChangeError, Clock, Done, Timeline};

/// What came of an undo, a redo or a jump. It is durable.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The operation that made the move: one, however many steps there were.
    #[serde(flatten)]
    pub done: Done,
    /// How many steps were made; fewer than asked for if there were no more.
    pub steps: u64,
    /// The change whose state is current now.
    pub position: Version,
    /// Whether a further undo is possible.
    pub can_undo: bool,
    /// Whether a redo is possible.
    pub can_redo: bool,
    /// Threads that came or went along, because a take had been promoted.
    pub also: Vec<ThreadId>,
}

impl Timeline {
    /// Takes back that many steps.
    pub fn undo(
        &self,
        thread: ThreadId,
        unit: Unit,
        steps: u64,
        caller: Caller,
    ) -> Result<Moved, ChangeError> {
        let clock = self.clock.clone();
        let depth = self.rules.depth;
        let moved = self.store.write(move |writing| {
            let start = Head::of(writing, thread, &caller)?;
            let log = writing.log(start.row.number);
            let way = walk(&start, steps, |place| {
                let Some(to) = history::undo(&log, place, unit)? else { return Ok(Next::Nothing) };
                let beyond = depth.map_or(Ok(false), |depth| Ok(history::distance(&log, to)? > depth));
                beyond.map(|beyond: bool| if beyond { Next::TooFar } else { Next::To(to) })
            })?;
            let from = start.last.operation.place.position;
            match way {
                Way { to: Some(to), steps, .. } => {
                    let kind = OperationKind::Undone { from, to: to.position };
                    go(writing, &start, to, steps, kind, caller, &*clock)
                }
                Way { too_far: true, .. } => Err(ChangeError::TooDeep(depth.unwrap_or_default())),
                _ => Err(ChangeError::NothingToUndo),
            }
        })?;
        Ok(moved)
    }

    /// Makes that many steps again that had been taken back.
    pub fn redo(
        &self,
        thread: ThreadId,
        unit: Unit,
        steps: u64,
        caller: Caller,
    ) -> Result<Moved, ChangeError> {
        let clock = self.clock.clone();
        let moved = self.store.write(move |writing| {
            let start = Head::of(writing, thread, &caller)?;
            let log = writing.log(start.row.number);
            let way = walk(&start, steps, |place| {
                Ok(history::redo(&log, place, unit)?.map_or(Next::Nothing, Next::To))
            })?;
            let from = start.last.operation.place.position;
            let Some(to) = way.to else { return Err(ChangeError::NothingToRedo) };
            let kind = OperationKind::Redone { from, to: to.position };
            go(writing, &start, to, way.steps, kind, caller, &*clock)
        })?;
        Ok(moved)
    }

    /// Makes the state just after operation `version` current again.
    pub fn jump(&self, thread: ThreadId, version: Version, caller: Caller) -> Result<Moved, ChangeError> {
        let clock = self.clock.clone();
        let moved = self.store.write(move |writing| {
            let start = Head::of(writing, thread, &caller)?;
            let current = start.last.operation.version;
            if version == 0 || version > current {
                return Err(ChangeError::NoSuchVersion { asked: version, current });
            }
            let place = start.last.operation.place;
            let to = history::jump(&writing.log(start.row.number), &place, version)?;
            if to.position == place.position {
                return stand(writing, &start, 0, Vec::new(), start.unchanged());
            }
            let kind = OperationKind::Jumped { from: place.position, to: to.position };
            go(writing, &start, to, 1, kind, caller, &*clock)
        })?;
        Ok(moved)
    }
}

/// What lies one step further.
enum Next {
    To(Move),
    Nothing,
    /// Something, but further back than the rules allow.
    TooFar,
}

/// Where a row of steps leads, without anything having moved yet.
struct Way {
    to: Option<Move>,
    steps: u64,
    too_far: bool,
}

/// Follows the steps as far as they go, and at most as many as were asked for.
fn walk(
    start: &Head,
    most: u64,
    next: impl Fn(&Place) -> Result<Next, ChangeError>,
) -> Result<Way, ChangeError> {
    let mut place = start.last.operation.place;
    let mut way = Way { to: None, steps: 0, too_far: false };
    while way.steps < most {
        match next(&place)? {
            Next::To(to) => {
                place = history::place_of_move(&place, to);
                way = Way { to: Some(to), steps: way.steps + 1, ..way };
            }
            Next::TooFar => return Ok(Way { too_far: true, ..way }),
            Next::Nothing => break,
        }
    }
    Ok(way)
}

/// Makes the move, however many steps it has, as one operation. Threads that were promoted on the way come along.
fn go(
    writing: &Writing<'_>,
    start: &Head,
    to: Move,
    steps: u64,
    kind: OperationKind,
    caller: Caller,
    clock: &dyn Clock,
) -> Result<Moved, ChangeError> {
    let also = follow(writing, start, to.position, &caller, clock)?;
    let done = publish_move(writing, start, to, kind, &caller, clock)?;
    // What the caller expected was checked before the move.
    let caller = Caller { expected: None, ..caller };
    let now = Head::of(writing, start.row.summary.id, &caller)?;
    stand(writing, &now, steps, also, done)
}

/// The answer: where the thread stands after a move.
fn stand(
    writing: &Writing<'_>,
    at: &Head,
    steps: u64,
    also: Vec<ThreadId>,
    done: Done,
) -> Result<Moved, ChangeError> {
    let place = at.last.operation.place;
    let log = writing.log(at.row.number);
    Ok(Moved {
        steps,
        position: place.position,
        can_undo: history::undo(&log, &place, Unit::Turn)?.is_some(),
        can_redo: history::redo(&log, &place, Unit::Turn)?.is_some(),
        also,
        done,
    })
}
