//! Undo, redo and jump.

use retake_model::history::{self, Move, Unit};
use retake_model::id::ThreadId;
use retake_model::operation::{OperationKind, Version};
use retake_store::Writing;
use serde::Serialize;

use crate::change::{Head, publish_move};
use crate::promote::follow;
use crate::{Caller, ChangeError, Done, Timeline};

/// What came of an undo, a redo or a jump. It is durable.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The operation that made the move (the last one, if there were several steps).
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
            let mut moving = Moving::new(writing, start, caller);
            while moving.steps < steps {
                let place = moving.at.last.operation.place;
                let log = writing.log(moving.at.row.number);
                let Some(to) = history::undo(&log, &place, unit)? else { break };
                if let Some(depth) = depth
                    && history::distance(&log, to)? > depth
                {
                    if moving.steps == 0 {
                        return Err(ChangeError::TooDeep(depth));
                    }
                    break;
                }
                let kind = OperationKind::Undone { from: place.position, to: to.position };
                moving.step(to, kind, &*clock)?;
            }
            moving.finish(ChangeError::NothingToUndo)
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
            let mut moving = Moving::new(writing, start, caller);
            while moving.steps < steps {
                let place = moving.at.last.operation.place;
                let Some(to) = history::redo(&writing.log(moving.at.row.number), &place, unit)? else {
                    break;
                };
                let kind = OperationKind::Redone { from: place.position, to: to.position };
                moving.step(to, kind, &*clock)?;
            }
            moving.finish(ChangeError::NothingToRedo)
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
            let mut moving = Moving::new(writing, start, caller);
            if to.position != place.position {
                let kind = OperationKind::Jumped { from: place.position, to: to.position };
                moving.step(to, kind, &*clock)?;
            }
            moving.finish_anyway()
        })?;
        Ok(moved)
    }
}

/// A row of moves inside one transaction.
struct Moving<'writing, 'transaction> {
    writing: &'writing Writing<'transaction>,
    at: Head,
    caller: Caller,
    steps: u64,
    done: Option<Done>,
    also: Vec<ThreadId>,
}

impl<'writing, 'transaction> Moving<'writing, 'transaction> {
    fn new(writing: &'writing Writing<'transaction>, at: Head, caller: Caller) -> Self {
        Self { writing, at, caller, steps: 0, done: None, also: Vec::new() }
    }

    fn step(&mut self, to: Move, kind: OperationKind, clock: &dyn crate::Clock) -> Result<(), ChangeError> {
        let also = follow(self.writing, &self.at, to.position, &self.caller, clock)?;
        let (done, at) = publish_move(self.writing, &self.at, to, kind, &self.caller, clock)?;
        (self.done, self.at) = (Some(done), at);
        self.also.extend(also);
        self.steps += 1;
        // What the caller expected was checked by the first step.
        self.caller.expected = None;
        Ok(())
    }

    fn finish(self, nothing: ChangeError) -> Result<Moved, ChangeError> {
        if self.steps == 0 { Err(nothing) } else { self.finish_anyway() }
    }

    fn finish_anyway(self) -> Result<Moved, ChangeError> {
        let place = self.at.last.operation.place;
        let log = self.writing.log(self.at.row.number);
        Ok(Moved {
            steps: self.steps,
            position: place.position,
            can_undo: history::undo(&log, &place, Unit::Turn)?.is_some(),
            can_redo: history::redo(&log, &place, Unit::Turn)?.is_some(),
            also: self.also,
            done: self.done.unwrap_or_else(|| self.at.unchanged()),
        })
    }
}
