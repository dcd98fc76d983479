//! The identity of a turn, its lease and its record in the runtime database.

use std::sync::Arc;

use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::operation::Actor;
use retake_model::take::Take;
use retake_model::turn::RunningTurn;
use retake_store::runtime::{LivenessLock, RuntimeDatabase, TurnLease};
use retake_timeline::{Caller, ReadError, Reader};

use super::{AgentRuntime, TurnError};
use crate::trace::TraceWriter;

/// A turn that this process runs.
pub(super) struct TurnSession {
    pub(super) database: Arc<RuntimeDatabase>,
    pub(super) record: RunningTurn,
    alive: Option<LivenessLock>,
    lease: TurnLease,
}

impl TurnSession {
    pub(super) fn new(
        runtime: &AgentRuntime,
        lease: TurnLease,
        (thread, take, turn): (ThreadId, TakeId, TurnId),
    ) -> Result<Self, TurnError> {
        let record = RunningTurn {
            thread,
            take,
            turn,
            started: runtime.timeline.now(),
            process: std::process::id(),
            partial: None,
            state: None,
        };
        let database = Arc::new(runtime.timeline.store().runtime_database()?);
        Ok(Self { database, record, alive: None, lease })
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.record.thread
    }

    pub(super) fn take(&self) -> TakeId {
        self.record.take
    }

    pub(super) fn turn(&self) -> TurnId {
        self.record.turn
    }

    /// Records the turn as running.
    pub(super) fn begin(&mut self, runtime: &AgentRuntime) -> Result<(), TurnError> {
        self.alive = Some(runtime.timeline.store().lock_alive(self.turn())?);
        self.save()
    }

    /// Writes the record.
    pub(super) fn save(&self) -> Result<(), TurnError> {
        Ok(self.database.put_turn(&self.record)?)
    }

    /// Deletes the record.
    pub(super) fn delete_record(&self) -> Result<(), TurnError> {
        self.database.end_turn(self.take())?;
        Ok(())
    }

    /// The record of an earlier process, if it was killed in this turn.
    pub(super) fn earlier_record(&self) -> Result<Option<RunningTurn>, TurnError> {
        Ok(self.database.turn(self.take())?)
    }

    /// Deletes the records of turns in takes that no longer exist. If an undo removes a take whose process
    /// was killed, no later turn runs there to delete the record.
    pub(super) fn delete_orphaned_records(&self, runtime: &AgentRuntime) -> Result<(), TurnError> {
        let reader = runtime.timeline.read()?;
        for (turn, runs) in runtime.timeline.store().running_turns(&self.database)? {
            let gone = || match reader.state(turn.thread) {
                Ok(state) => Ok(state.take(&reader.queries(), turn.take)?.is_none()),
                Err(ReadError::NoSuchThread(_)) => Ok(true),
                Err(error) => Err(TurnError::from(error)),
            };
            if !runs && gone()? {
                self.database.end_turn(turn.take)?;
            }
        }
        Ok(())
    }

    /// Ends the turn's liveness lock; the lease stays.
    pub(super) fn end(&mut self) {
        self.alive = None;
    }

    /// Ends the session and keeps the lease of the take.
    pub(super) fn into_lease(self) -> TurnLease {
        self.lease
    }

    /// The current state of the take.
    pub(super) fn read_take(&self, reader: &Reader<'_>) -> Result<Take, TurnError> {
        let state = reader.state(self.thread())?;
        state.take(&reader.queries(), self.take())?.ok_or(TurnError::NoSuchTake)
    }

    /// The caller of the turn's changes.
    pub(super) fn caller(&self, runtime: &AgentRuntime, actor: Actor) -> Caller {
        let environment = runtime.environment.clone();
        Caller { actor, environment, turn: Some(self.turn()), ..Caller::human() }
    }

    pub(super) fn trace(&self) -> TraceWriter<'_> {
        TraceWriter {
            runtime_database: &self.database,
            thread: self.thread(),
            take: self.take(),
            turn: self.turn(),
        }
    }
}
