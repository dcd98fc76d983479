//! Writes the steps of a turn to the timeline.

use retake_model::agent::Agent;
use retake_model::command::{NewEntry, TurnAdvance};
use retake_model::content::ContentId;
use retake_model::id::EntryId;
use retake_model::operation::{Actor, Version};
use retake_model::path::TreePath;
use retake_timeline::{Caller, ChangeOutcome, Command, InsertPosition, ToolPhase};

use super::session::TurnSession;
use super::{AgentRuntime, TurnError};

/// Publishes steps, and knows the last version that the turn has seen.
pub(super) struct Publisher<'a> {
    runtime: &'a AgentRuntime,
    pub(super) version: Version,
    /// The last operation of the turn.
    pub(super) operation: Option<ContentId>,
    /// The version of the thread at the last check for an undo.
    checked: Version,
}

/// The part of a tool's run that a step belongs to.
pub(super) struct ToolFiles<'a> {
    pub(super) phase: ToolPhase,
    /// The paths that the tool writes; `None` if it may write any.
    pub(super) named: Option<&'a [TreePath]>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(runtime: &'a AgentRuntime) -> Self {
        Self { runtime, version: 0, operation: None, checked: 0 }
    }

    /// Records a change that another component published for the turn.
    pub(super) fn record(&mut self, version: Version, operation: Option<ContentId>) {
        (self.version, self.checked, self.operation) = (version, version, operation);
    }

    pub(super) fn publish(
        &mut self,
        session: &TurnSession,
        advance: TurnAdvance,
        caller: Caller,
    ) -> Result<(), TurnError> {
        let command = Command::AdvanceTurn { take: session.take(), advance };
        let done = self.runtime.timeline.change(session.thread(), command, caller)?;
        self.published(&done);
        Ok(())
    }

    /// Like `publish`, before or after a tool works in the folder; records and counts the files that it
    /// changed.
    pub(super) fn publish_with_files(
        &mut self,
        session: &TurnSession,
        advance: TurnAdvance,
        caller: Caller,
        files: &ToolFiles<'_>,
    ) -> Result<u64, TurnError> {
        let Some(working_copy) = &self.runtime.working_copy else {
            self.publish(session, advance, caller)?;
            return Ok(0);
        };
        let (thread, take) = (session.thread(), session.take());
        let advanced = working_copy.advance(thread, take, advance, caller, files.phase, files.named)?;
        self.published(&advanced.done);
        Ok(advanced.paths)
    }

    fn published(&mut self, done: &ChangeOutcome) {
        self.record(done.version, done.operation);
    }

    /// Adds messages that arrived after the last step of the turn.
    pub(super) fn add_late(
        &mut self,
        session: &TurnSession,
        entries: Vec<NewEntry>,
    ) -> Result<(), TurnError> {
        let add = Command::AddEntries { take: session.take(), at: InsertPosition::End, entries };
        let caller = session.caller(self.runtime, Actor::Human);
        self.version = self.runtime.timeline.change(session.thread(), add, caller)?.version;
        Ok(())
    }

    /// Records file changes of a killed tool as its own, while the working copy still shows that it made
    /// them. Returns whether there were any.
    pub(super) fn settle_files(&self, session: &TurnSession) -> Result<bool, TurnError> {
        let Some(working_copy) = &self.runtime.working_copy else { return Ok(false) };
        let caller = Caller { environment: self.runtime.environment.clone(), ..Caller::human() };
        Ok(working_copy.record_changes(session.thread(), caller)?.operation.is_some())
    }

    /// The current version of the thread.
    pub(super) fn newest(&self, session: &TurnSession) -> Result<Version, TurnError> {
        Ok(self.runtime.timeline.read()?.thread(session.thread())?.summary.version)
    }

    /// Whether the turn was undone or ended by another writer.
    pub(super) fn is_undone(&mut self, session: &TurnSession) -> Result<bool, TurnError> {
        let newest = self.newest(session)?;
        if newest == self.checked {
            return Ok(false);
        }
        self.checked = newest;
        match self.agent(session) {
            Ok(agent) => Ok(agent.is_none_or(|agent| agent.turn != session.turn())),
            Err(TurnError::NoSuchTake) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The agent of the take on disk.
    fn agent(&self, session: &TurnSession) -> Result<Option<Agent>, TurnError> {
        Ok(session.read_take(&self.runtime.timeline.read()?)?.agent)
    }

    /// Whether the take has an entry.
    pub(super) fn has_entry(&self, session: &TurnSession, entry: EntryId) -> Result<bool, TurnError> {
        let reader = self.runtime.timeline.read()?;
        let take = session.read_take(&reader)?;
        Ok(reader.entries(session.thread(), &take).get(entry)?.is_some())
    }
}
