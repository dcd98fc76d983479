//! Undo, redo and jump. Each is one operation, however many steps it goes.

use retake_model::history::{self, Move, Unit, place_of_move};
use retake_model::id::ThreadId;
use retake_model::operation::{Operation, OperationKind, Version};
use retake_store::{Queries, Writing};
use serde::Serialize;

use crate::change::{Head, publish_move};
use crate::promote::follow;
use crate::{Caller, ChangeError, Done, Rules, Timeline};

/// What came of an undo, a redo or a jump. It is durable.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Back by that many steps.
    Undo(Unit, u64),
    /// Forward by that many steps.
    Redo(Unit, u64),
    /// To the moment just after an operation.
    Jump(Version),
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
        self.go(thread, Goal::Undo(unit, steps), caller)
    }

    /// Makes that many steps again that had been taken back.
    pub fn redo(
        &self,
        thread: ThreadId,
        unit: Unit,
        steps: u64,
        caller: Caller,
    ) -> Result<Moved, ChangeError> {
        self.go(thread, Goal::Redo(unit, steps), caller)
    }

    /// Makes the state just after operation `version` current again.
    pub fn jump(&self, thread: ThreadId, version: Version, caller: Caller) -> Result<Moved, ChangeError> {
        self.go(thread, Goal::Jump(version), caller)
    }

    /// Moves the conversation along the log, however many steps, as one operation. Files stay as they are:
    /// [`crate::Desk::go`] moves both.
    pub fn go(&self, thread: ThreadId, goal: Goal, caller: Caller) -> Result<Moved, ChangeError> {
        self.settled(|| {
            let (clock, rules, caller) = (self.clock.clone(), self.rules, caller.clone());
            let moved = self.store.write(move |writing| -> Result<Moved, ChangeError> {
                let start = Head::of(writing, thread, &caller)?;
                let head = &start.last.operation;
                let way = goal.destination(writing, start.row.number, head, rules)?;
                if way.to.position == head.place.position {
                    return stand(writing, &start, 0, Vec::new(), start.unchanged());
                }
                let kind = goal.kind(head.place.position, way.to.position);
                let also = follow(writing, &start, way.to.position, &caller, &*clock)?;
                let (done, now) = publish_move(writing, &start, way.to, kind, &caller, &*clock)?;
                stand(writing, &now, way.steps, also, done)
            })?;
            Ok(moved)
        })
    }
}

/// Where a goal leads, without anything having moved yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) to: Move,
    /// In how many steps; fewer than asked for if there are no more.
    pub(crate) steps: u64,
}

impl Goal {
    /// Where it leads from the head of a thread's log.
    pub(crate) fn destination(
        self,
        queries: &Queries<'_>,
        thread: i64,
        head: &Operation,
        rules: Rules,
    ) -> Result<Way, ChangeError> {
        let log = queries.log(thread);
        let (most, unit) = match self {
            Self::Jump(asked) if asked == 0 || asked > head.version => {
                return Err(ChangeError::NoSuchVersion { asked, current: head.version });
            }
            Self::Jump(version) => {
                return Ok(Way { to: history::jump(&log, &head.place, version)?, steps: 1 });
            }
            Self::Undo(unit, steps) | Self::Redo(unit, steps) => (steps, unit),
        };
        let (mut place, mut way) = (head.place, None);
        for steps in 1..=most {
            let next = match self {
                Self::Redo(..) => history::redo(&log, &place, unit)?,
                _ => history::undo(&log, &place, unit)?,
            };
            let Some(to) = next else { break };
            if let (Self::Undo(..), Some(depth)) = (self, rules.depth)
                && history::distance(&log, to)? > depth
            {
                return way.ok_or(ChangeError::TooDeep(depth));
            }
            place = place_of_move(&place, to);
            way = Some(Way { to, steps });
        }
        way.ok_or(match self {
            Self::Redo(..) => ChangeError::NothingToRedo,
            _ => ChangeError::NothingToUndo,
        })
    }

    /// The move as it is written down.
    pub(crate) fn kind(self, from: Version, to: Version) -> OperationKind {
        match self {
            Self::Undo(..) => OperationKind::Undone { from, to },
            Self::Redo(..) => OperationKind::Redone { from, to },
            Self::Jump(_) => OperationKind::Jumped { from, to },
        }
    }
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
