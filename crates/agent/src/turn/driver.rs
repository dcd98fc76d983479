//! Executes the actions that the state machine requests, one after another: takes an action, executes it, and
//! feeds the resulting event back.

use std::sync::Arc;
use std::time::Duration;

use retake_model::agent::{Action, AgentState, Event, Fault, StepContext, ToolRun, ToolStatus, TurnEnd};
use retake_model::command::{NewEntry, TurnAdvance};
use retake_model::content::ContentId;
use retake_model::entry::Fields;
use retake_model::operation::{Actor, TurnStep, Version};
use retake_timeline::Caller;

use super::accounting::Accounting;
use super::batch::CallQueue;
use super::entries::{self, AnswerRecord, INTERRUPTED};
use super::event::{TurnEvent, TurnObserver};
use super::inbox::Inbox;
use super::machine::{Machine, Transition};
use super::publisher::{Publisher, ToolFiles};
use super::session::TurnSession;
use super::stops::CallFailures;
use super::turn_handle;
use super::{AgentRuntime, ResumeRequest, TurnError, TurnOutcome};
use crate::cancel::Cancel;
use crate::provider::{Answer, Stop};
use crate::request::Trail;
use crate::tools::{self, ToolContext};

/// One turn, while this process runs it.
pub(super) struct Driver<'a> {
    pub(super) runtime: &'a AgentRuntime,
    pub(super) cancel: &'a Cancel,
    pub(super) observer: &'a mut dyn TurnObserver,
    pub(super) session: TurnSession,
    pub(super) machine: Machine,
    pub(super) publisher: Publisher<'a>,
    pub(super) inbox: Inbox,
    pub(super) calls: CallQueue,
    pub(super) accounting: Accounting,
    pub(super) call_failures: CallFailures,
}

/// An event of the state machine, and what its operation records.
pub(super) struct StepRecord {
    pub(super) event: Event,
    pub(super) entries: Vec<NewEntry>,
    pub(super) step: TurnStep,
    pub(super) actor: Actor,
}

impl<'a> Driver<'a> {
    /// A driver for a turn in a state: [`AgentState::Waiting`] for a new turn.
    pub(super) fn new(
        runtime: &'a AgentRuntime,
        session: TurnSession,
        state: AgentState,
        cancel: &'a Cancel,
        observer: &'a mut dyn TurnObserver,
    ) -> Self {
        Self {
            runtime,
            cancel,
            observer,
            session,
            machine: Machine::new(state),
            publisher: Publisher::new(runtime),
            inbox: Inbox::default(),
            calls: CallQueue::default(),
            accounting: Accounting::default(),
            call_failures: CallFailures::default(),
        }
    }

    /// Runs a new turn whose start is on disk.
    pub(super) fn run(
        mut self,
        version: Version,
        operation: Option<ContentId>,
    ) -> Result<TurnOutcome, TurnError> {
        self.publisher.record(version, operation);
        let started = self.machine.propose(Event::Prompted, &self.step_context());
        self.session.begin(self.runtime)?;
        self.session.delete_orphaned_records(self.runtime)?;
        self.emit_started();
        self.enter(started);
        self.drive()
    }

    /// Resumes the turn from its state and runs it.
    pub(super) fn resume(mut self, request: ResumeRequest) -> Result<TurnOutcome, TurnError> {
        let ResumeRequest { settings, expected, request } = request;
        let (partial, recorded) = self.recover()?;
        // Recording the files just created a version that the caller cannot know.
        let expected = expected.filter(|_| !recorded);
        self.session.begin(self.runtime)?;
        let (transition, advance) = self.prepare(Event::Resumed, partial, TurnStep::Resumed);
        let caller =
            Caller { expected, request, ..self.session.caller(self.runtime, self.runtime.actor.clone()) };
        self.publisher.publish(&self.session, TurnAdvance { settings, ..advance }, caller)?;
        self.emit_started();
        self.accept(transition)?;
        self.drive()
    }

    /// Closes the turn, which an earlier process left unfinished.
    pub(super) fn close(mut self) -> Result<TurnSession, TurnError> {
        let (partial, _) = self.recover()?;
        // A caller that starts something else does not resume this turn.
        self.advance(Event::Interrupted, partial, TurnStep::Interrupted, Actor::Recovery)?;
        self.session.delete_record()?;
        Ok(self.session)
    }

    /// Deletes a record without a turn: the process was killed after it published the last step.
    pub(super) fn close_record(mut self) -> Result<TurnSession, TurnError> {
        self.record_late_messages()?;
        Ok(self.session)
    }

    /// Finds what a killed process left: calls, messages, files and the partial answer, which is returned as
    /// an entry, with whether files were recorded.
    fn recover(&mut self) -> Result<(Vec<NewEntry>, bool), TurnError> {
        self.calls.recall(self.runtime, &self.session, self.machine.state())?;
        let partial = self.partial_answer()?;
        self.load_undelivered_messages()?;
        self.sweep()?;
        let recorded = self.publisher.settle_files(&self.session)?;
        Ok((partial, recorded))
    }

    /// Removes temporary files of a tool that was killed while writing a file.
    fn sweep(&mut self) -> Result<(), TurnError> {
        let Some(left) = self.session.earlier_record()? else { return Ok(()) };
        let ran = |run: &&ToolRun| run.status == ToolStatus::Running;
        let running: Vec<ToolRun> = self.machine.state().calls().iter().filter(ran).cloned().collect();
        for run in running {
            if let Some((call, _)) = self.call_of(&run.call)? {
                tools::sweep(&call, &ToolContext::open(&self.runtime.folder)?, left.process);
            }
        }
        Ok(())
    }

    /// The partial answer of a killed process, as an entry.
    fn partial_answer(&self) -> Result<Vec<NewEntry>, TurnError> {
        let record = self.session.earlier_record()?.filter(|left| left.turn == self.session.turn());
        let Some(partial) = record.and_then(|record| record.partial) else { return Ok(Vec::new()) };
        if self.publisher.has_entry(&self.session, partial.entry)? {
            return Ok(Vec::new());
        }
        let answer = Answer { blocks: partial.blocks, stop: Stop::EndTurn, ..Answer::default() };
        let answered = AnswerRecord {
            id: partial.entry,
            answer: &answer,
            provider: self.runtime.backend.provider(),
            model: partial.model.as_deref().unwrap_or_default(),
            micro_dollars: None,
            estimate: None,
            interrupted: true,
            trail: &Trail::default(),
            time: partial.began,
        };
        Ok(answered.entry().into_iter().collect())
    }

    fn emit_started(&mut self) {
        let event = TurnEvent::Started {
            thread: self.session.thread(),
            take: self.session.take(),
            turn: self.session.turn(),
            provider: self.runtime.backend.provider().to_owned(),
            model: self.runtime.backend.model().to_owned(),
            operation: self.publisher.operation,
            version: self.publisher.version,
        };
        self.observer.on_event(&event);
        let reader = self.runtime.timeline.read().ok();
        let settings = reader
            .and_then(|reader| reader.settings(self.session.thread()).effective().ok())
            .unwrap_or_default();
        for message in self.runtime.backend.notices(&settings, self.runtime.sized) {
            self.observer.on_event(&TurnEvent::Notice { message });
        }
    }

    /// Runs the turn to its end.
    fn drive(mut self) -> Result<TurnOutcome, TurnError> {
        let how = match self.execute_cancellable() {
            // The take is gone too if the turn started with a fork.
            Err(TurnError::Gone | TurnError::NoSuchTake) => {
                // A turn that was undone cannot be resumed. After any other error it can, and needs its
                // record.
                self.session.delete_record()?;
                return Err(TurnError::Gone);
            }
            how => how?,
        };
        self.record_late_messages()?;
        self.session.end();
        let (message, version) = (self.machine.failure().map(str::to_owned), self.publisher.version);
        let event = TurnEvent::Ended {
            how,
            message: message.clone(),
            version,
            micro_dollars: self.accounting.micro_dollars,
            usage: self.accounting.usage.clone(),
        };
        self.observer.on_event(&event);
        Ok(TurnOutcome {
            thread: self.session.thread(),
            take: self.session.take(),
            turn: self.session.turn(),
            how,
            message,
            version,
        })
    }

    /// Executes all actions while another thread listens for cancellation, because a slow observer may block
    /// this thread at any time.
    fn execute_cancellable(&mut self) -> Result<TurnEnd, TurnError> {
        let (database, take) = (Arc::clone(&self.session.database), self.session.take());
        let (cancel, over) = (self.cancel.clone(), Cancel::new());
        std::thread::scope(|scope| {
            scope.spawn(|| turn_handle::watch(&database, take, &cancel, &over));
            // Also on panic, so that the other thread does not wait for ever.
            let _over = over.set_on_drop();
            self.execute()
        })
    }

    /// Executes actions until none is left.
    fn execute(&mut self) -> Result<TurnEnd, TurnError> {
        while let Some(action) = self.machine.next_action() {
            match action {
                Action::CallModel => self.call_model()?,
                Action::Decide { call } => self.decide(&call)?,
                Action::RunTool { call } => self.run_tool(&call)?,
                Action::RunHook => self.run_hook()?,
                Action::Wait { millis } => self.wait_for_retry(millis)?,
                Action::EndTurn { how } => return Ok(how),
                Action::Quit => return Ok(TurnEnd::ShutDown),
                // Stopped work has stopped by the time its end is published, and whatever was closed was
                // closed in the same operation.
                Action::StopModel
                | Action::StopTool { .. }
                | Action::CloseCall { .. }
                | Action::CloseHook => {}
            }
        }
        Ok(TurnEnd::Completed)
    }

    /// Ends the record of the turn. Messages that arrived too late for the model stay in the conversation.
    fn record_late_messages(&mut self) -> Result<(), TurnError> {
        self.load_undelivered_messages()?;
        let entries = self.take_steering_entries();
        if !entries.is_empty() {
            self.publisher.add_late(&self.session, entries)?;
        }
        self.session.delete_record()
    }

    /// Feeds an event to the state machine. The new state and its entries are on disk before its actions
    /// start.
    pub(super) fn advance(
        &mut self,
        event: Event,
        entries: Vec<NewEntry>,
        step: TurnStep,
        actor: Actor,
    ) -> Result<(), TurnError> {
        let (transition, advance) = self.prepare(event, entries, step);
        let caller = self.session.caller(self.runtime, actor);
        self.publisher.publish(&self.session, advance, caller)?;
        self.accept(transition)
    }

    /// Like `advance`, before or after a tool works in the folder. Returns the number of files that it
    /// changed.
    pub(super) fn advance_with_files(
        &mut self,
        record: StepRecord,
        files: &ToolFiles<'_>,
    ) -> Result<u64, TurnError> {
        let StepRecord { event, entries, step, actor } = record;
        let (transition, advance) = self.prepare(event, entries, step);
        let caller = self.session.caller(self.runtime, actor);
        let paths = self.publisher.publish_with_files(&self.session, advance, caller, files)?;
        self.accept(transition)?;
        Ok(paths)
    }

    /// The transition for an event, and the change that records it.
    fn prepare(
        &mut self,
        event: Event,
        mut entries: Vec<NewEntry>,
        step: TurnStep,
    ) -> (Transition, TurnAdvance) {
        let transition = self.machine.propose(event, &self.step_context());
        for action in &transition.actions {
            match action {
                Action::CloseCall { call } => entries.push(self.closed(call)),
                Action::CloseHook => entries.push(self.closed_hook()),
                // A message must not come between the results of one answer.
                Action::CallModel | Action::EndTurn { how: TurnEnd::Interrupted } | Action::Quit => {
                    entries.extend(self.take_steering_entries());
                }
                _ => {}
            }
        }
        let state = transition.state.clone();
        let advance = TurnAdvance { turn: self.session.turn(), entries, settings: Vec::new(), state, step };
        (transition, advance)
    }

    /// Makes a published transition current.
    fn accept(&mut self, transition: Transition) -> Result<(), TurnError> {
        self.enter(transition);
        self.calls.follow(self.machine.state(), self.publisher.version);
        self.inbox.delete_published(&self.session)
    }

    /// Applies an event that needs no operation, because its transition has no actions.
    pub(super) fn note(&mut self, event: Event) {
        let transition = self.machine.propose(event, &self.step_context());
        self.enter(transition);
    }

    /// Makes a transition current, and reports a new state to the observer.
    fn enter(&mut self, transition: Transition) {
        let before = self.machine.state().kind();
        self.machine.accept(transition);
        let state = self.machine.state().kind();
        if state != before {
            self.observer.on_event(&TurnEvent::State { state });
        }
    }

    fn step_context(&self) -> StepContext<'_> {
        StepContext {
            retry_policy: &self.runtime.retry_policy,
            jitter: self.runtime.timeline.random_u64(),
            later: self.calls.later(),
            hook: self.needs_hook(),
        }
    }

    /// Whether the model will be called again after this fault.
    pub(super) fn is_retried(&self, fault: &Fault) -> bool {
        let faulted = self.machine.propose(Event::Faulted { fault: fault.clone() }, &self.step_context());
        matches!(faulted.state, AgentState::Failed { retry_in: Some(_), .. })
    }

    /// The result of an interrupted call.
    fn closed(&self, call: &str) -> NewEntry {
        let now = self.runtime.timeline.now();
        entries::result(call, INTERRUPTED.to_owned(), true, Fields::default(), now).into()
    }

    fn wait_for_retry(&mut self, millis: u64) -> Result<(), TurnError> {
        if let AgentState::Failed { message, attempts, .. } = self.machine.state() {
            let event = TurnEvent::Retrying { message: message.clone(), millis, attempt: *attempts };
            self.observer.on_event(&event);
        }
        if self.wait(Duration::from_millis(millis))? {
            return self.interrupt(Vec::new());
        }
        self.advance(Event::RetryDue, Vec::new(), TurnStep::CalledAgain, Actor::Agent)
    }

    /// Ends the turn at the user's request, or leaves it to be resumed because the process has to exit.
    pub(super) fn interrupt(&mut self, entries: Vec<NewEntry>) -> Result<(), TurnError> {
        let (event, actor) = if self.cancel.is_shutting_down() {
            (Event::ShutDown, Actor::Agent)
        } else {
            (Event::Interrupted, Actor::Human)
        };
        self.advance(event, entries, TurnStep::Interrupted, actor)
    }

    /// Ends the attempt after a failure.
    pub(super) fn fail(&mut self, fault: Fault, entries: Vec<NewEntry>) -> Result<(), TurnError> {
        let step = TurnStep::Failed { message: fault.message.clone() };
        self.advance(Event::Faulted { fault }, entries, step, Actor::Agent)
    }

    /// Waits and handles messages meanwhile. Returns whether to end the turn.
    pub(super) fn wait(&mut self, longest: Duration) -> Result<bool, TurnError> {
        let mut left = longest;
        loop {
            self.read_messages()?;
            let pause = left.min(Duration::from_millis(100));
            if self.cancel.wait_timeout(pause) {
                return Ok(true);
            }
            left -= pause;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}
