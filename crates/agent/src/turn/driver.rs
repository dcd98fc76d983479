//! Executes the actions that the state machine requests, one after another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use retake_model::agent::{Action, Agent, AgentState, Event, Fault, ToolRun, ToolStatus, TurnEnd, step};
use retake_model::command::{NewEntry, TurnAdvance};
use retake_model::content::ContentId;
use retake_model::entry::{Fields, Usage};
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::{Actor, TurnStep, Version};
use retake_model::path::TreePath;
use retake_model::turn::{RunningTurn, TurnMessage};
use retake_store::runtime::{LivenessLock, RuntimeDatabase, TurnLease};
use retake_timeline::{Caller, ChangeOutcome, Command, InsertPosition, ReadError, ToolPhase};

use super::batch::{KnownCalls, NamedCall};
use super::entries::{self, AnswerRecord, INTERRUPTED};
use super::event::{TurnEvent, TurnObserver};
use super::inbox::Steering;
use super::stops::BrokenCalls;
use super::turn_handle;
use super::{AgentRuntime, ResumeRequest, TurnError, TurnOutcome};
use crate::cancel::Cancel;
use crate::provider::{Answer, Stop};
use crate::request::Trail;
use crate::tools::{self, ToolContext};
use crate::trace::TraceWriter;

/// One turn, while this process runs it.
pub(super) struct Driver<'a> {
    pub(super) runtime: &'a AgentRuntime,
    pub(super) thread: ThreadId,
    pub(super) take: TakeId,
    turn: TurnId,
    pub(super) state: AgentState,
    queue: VecDeque<Action>,
    /// Calls of the last answer that are not in the state yet.
    pub(super) later: VecDeque<NamedCall>,
    /// Events for calls over the limit, emitted once the answer is on disk.
    pub(super) refused: Vec<TurnEvent>,
    pub(super) known: Option<KnownCalls>,
    /// Data about the current request to store with its answer.
    pub(super) trail: Trail,
    pub(super) cancel: &'a Cancel,
    pub(super) observer: &'a mut dyn TurnObserver,
    pub(super) runtime_database: Arc<RuntimeDatabase>,
    pub(super) running: RunningTurn,
    pub(super) steering: Vec<Steering>,
    /// Messages whose entries are about to be published.
    pub(super) published: Vec<i64>,
    /// The last message read.
    pub(super) read: i64,
    /// The version of the thread at the last check.
    pub(super) checked_version: Version,
    /// Number of model calls so far.
    pub(super) rounds: u32,
    pub(super) decisions: Vec<TurnMessage>,
    /// Errors in the calls of the last answer.
    pub(super) broken_calls: Option<BrokenCalls>,
    /// Whether a call was cut off at the default output limit.
    pub(super) raise_limit: bool,
    /// Estimated tokens of the last request.
    pub(super) estimate: Option<u64>,
    pub(super) usage: Usage,
    pub(super) micro_dollars: Option<u64>,
    version: Version,
    /// The last operation of the turn.
    operation: Option<ContentId>,
    message: Option<String>,
    alive: Option<LivenessLock>,
    _lease: TurnLease,
}

impl<'a> Driver<'a> {
    /// Acquires the lease of the take.
    pub(super) fn lease(
        runtime: &'a AgentRuntime,
        thread: ThreadId,
        take: TakeId,
        cancel: &'a Cancel,
        observer: &'a mut dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        let lease = runtime.timeline.store().lease_turn(take)?.ok_or(TurnError::Busy)?;
        let turn = TurnId::generate(&mut runtime.timeline.fresh());
        let running = RunningTurn {
            thread,
            take,
            turn,
            started: runtime.timeline.now(),
            process: std::process::id(),
            partial: None,
        };
        Ok(Self {
            runtime,
            thread,
            take,
            turn,
            state: AgentState::Waiting,
            queue: VecDeque::new(),
            later: VecDeque::new(),
            refused: Vec::new(),
            known: None,
            trail: Trail::default(),
            cancel,
            observer,
            runtime_database: Arc::new(runtime.timeline.store().runtime_database()?),
            running,
            steering: Vec::new(),
            published: Vec::new(),
            read: 0,
            checked_version: 0,
            rounds: 0,
            decisions: Vec::new(),
            broken_calls: None,
            raise_limit: false,
            estimate: None,
            usage: Usage::default(),
            micro_dollars: None,
            version: 0,
            operation: None,
            message: None,
            alive: None,
            _lease: lease,
        })
    }

    pub(super) fn turn(&self) -> TurnId {
        self.turn
    }

    /// Makes this driver work on the given turn.
    pub(super) fn adopt_turn(&mut self, turn: TurnId) {
        self.turn = turn;
        self.running.turn = turn;
    }

    /// Continues after the start of the turn is on disk.
    pub(super) fn started(
        &mut self,
        version: Version,
        operation: Option<ContentId>,
    ) -> Result<(), TurnError> {
        self.version = version;
        self.operation = operation;
        self.state = AgentState::Calling { attempt: 1, steered: false };
        self.queue.push_back(Action::CallModel);
        self.alive = Some(self.runtime.timeline.store().lock_alive(self.turn)?);
        self.runtime_database.put_turn(&self.running)?;
        self.forget_gone()?;
        self.emit_started();
        Ok(())
    }

    /// Deletes the records of turns in takes that no longer exist. If an undo removes a take whose process
    /// was killed, no later turn runs there to delete the record.
    fn forget_gone(&self) -> Result<(), TurnError> {
        let store = self.runtime.timeline.store();
        let reader = self.runtime.timeline.read()?;
        for (turn, runs) in store.running_turns(&self.runtime_database)? {
            let gone = || match reader.state(turn.thread) {
                Ok(state) => Ok(state.take(&reader.queries(), turn.take)?.is_none()),
                Err(ReadError::NoSuchThread(_)) => Ok(true),
                Err(error) => Err(TurnError::from(error)),
            };
            if !runs && gone()? {
                self.runtime_database.end_turn(turn.take)?;
            }
        }
        Ok(())
    }

    fn emit_started(&mut self) {
        let event = TurnEvent::Started {
            thread: self.thread,
            take: self.take,
            turn: self.turn,
            provider: self.runtime.backend.provider().to_owned(),
            model: self.runtime.backend.model().to_owned(),
            operation: self.operation,
            version: self.version,
        };
        self.observer.on_event(&event);
        let reader = self.runtime.timeline.read().ok();
        let settings =
            reader.and_then(|reader| reader.settings(self.thread).effective().ok()).unwrap_or_default();
        for message in self.runtime.backend.notices(&settings, self.runtime.sized) {
            self.observer.on_event(&TurnEvent::Notice { message });
        }
    }

    /// Resumes from the state of the take.
    pub(super) fn resume(&mut self, request: ResumeRequest) -> Result<(), TurnError> {
        let ResumeRequest { settings, expected, request } = request;
        let agent = self.agent()?.ok_or(TurnError::Nothing)?;
        self.adopt_turn(agent.turn);
        self.state = agent.state;
        self.recall_later()?;
        let mut partial = self.leftover()?;
        partial.extend(self.undelivered_messages()?);
        self.sweep()?;
        let before = self.newest()?;
        self.settle_files()?;
        // Recording the files just created a version that the caller cannot know.
        let expected = if self.newest()? == before { expected } else { None };
        self.alive = Some(self.runtime.timeline.store().lock_alive(self.turn)?);
        self.runtime_database.put_turn(&self.running)?;
        let (advance, actions) = self.next(Event::Resumed, partial, TurnStep::Resumed);
        let caller = Caller { expected, request, ..self.caller(self.runtime.actor.clone()) };
        let done = self.publish(TurnAdvance { settings, ..advance.clone() }, caller)?;
        self.arrived(&done, advance.state, actions);
        self.delete_published_messages()?;
        self.emit_started();
        Ok(())
    }

    /// Ends the unfinished turn of the take. Returns whether there was one.
    pub(super) fn close_leftover(&mut self) -> Result<bool, TurnError> {
        let own = self.turn;
        let Some(agent) = self.agent()? else {
            // A record without a turn: the process was killed after it published the last step.
            self.record_late_messages()?;
            return Ok(false);
        };
        self.turn = agent.turn;
        self.state = agent.state;
        self.recall_later()?;
        let mut partial = self.leftover()?;
        partial.extend(self.undelivered_messages()?);
        self.sweep()?;
        self.settle_files()?;
        // A caller that starts something else does not resume this turn.
        self.advance(Event::Interrupted, partial, TurnStep::Interrupted, Actor::Recovery)?;
        self.queue.clear();
        self.runtime_database.end_turn(self.take)?;
        self.turn = own;
        self.state = AgentState::Waiting;
        Ok(true)
    }

    /// Records file changes of a killed tool as its own, while the working copy still shows that it made
    /// them.
    fn settle_files(&self) -> Result<(), TurnError> {
        if let Some(working_copy) = &self.runtime.working_copy {
            working_copy.record_changes(
                self.thread,
                Caller { environment: self.runtime.environment.clone(), ..Caller::human() },
            )?;
        }
        Ok(())
    }

    /// Removes temporary files of a tool that was killed while writing a file.
    fn sweep(&mut self) -> Result<(), TurnError> {
        let Some(left) = self.runtime_database.turn(self.take)? else { return Ok(()) };
        let ran = |run: &&ToolRun| run.status == ToolStatus::Running;
        let running: Vec<ToolRun> = self.state.calls().iter().filter(ran).cloned().collect();
        for run in running {
            if let Some((call, _)) = self.call_of(&run.call)? {
                tools::sweep(&call, &ToolContext::open(&self.runtime.folder)?, left.process);
            }
        }
        Ok(())
    }

    /// The state of the take on disk.
    pub(super) fn agent(&self) -> Result<Option<Agent>, TurnError> {
        let reader = self.runtime.timeline.read()?;
        let state = reader.state(self.thread)?;
        let take = state.take(&reader.queries(), self.take)?.ok_or(TurnError::NoSuchTake)?;
        Ok(take.agent)
    }

    /// The partial answer of a killed process, as an entry.
    fn leftover(&self) -> Result<Vec<NewEntry>, TurnError> {
        let Some(partial) = self.runtime_database.turn(self.take)?.filter(|left| left.turn == self.turn)
        else {
            return Ok(Vec::new());
        };
        let Some(partial) = partial.partial else { return Ok(Vec::new()) };
        if self.holds(partial.entry)? {
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

    /// Runs the turn to its end.
    pub(super) fn drive(mut self) -> Result<TurnOutcome, TurnError> {
        let how = match self.execute_cancellable() {
            // The take is gone too if the turn started with a fork.
            Err(TurnError::Gone | TurnError::NoSuchTake) => {
                // A turn that was undone cannot be resumed. After any other error it can, and needs its
                // record.
                self.runtime_database.end_turn(self.take)?;
                return Err(TurnError::Gone);
            }
            how => how?,
        };
        self.record_late_messages()?;
        self.alive = None;
        let event = TurnEvent::Ended {
            how,
            message: self.message.clone(),
            version: self.version,
            micro_dollars: self.micro_dollars,
            usage: self.usage.clone(),
        };
        self.observer.on_event(&event);
        Ok(TurnOutcome {
            thread: self.thread,
            take: self.take,
            turn: self.turn,
            how,
            message: self.message,
            version: self.version,
        })
    }

    /// Executes all actions while another thread listens for cancellation, because a slow observer may block
    /// this thread at any time.
    fn execute_cancellable(&mut self) -> Result<TurnEnd, TurnError> {
        let (runtime_database, take) = (Arc::clone(&self.runtime_database), self.take);
        let (cancel, over) = (self.cancel.clone(), Cancel::new());
        std::thread::scope(|scope| {
            scope.spawn(|| turn_handle::watch(&runtime_database, take, &cancel, &over));
            // Also on panic, so that the other thread does not wait for ever.
            let _over = over.set_on_drop();
            self.execute()
        })
    }

    /// Executes actions until none is left.
    fn execute(&mut self) -> Result<TurnEnd, TurnError> {
        loop {
            let Some(action) = self.queue.pop_front() else { return Ok(TurnEnd::Completed) };
            match action {
                Action::CallModel => self.call_model()?,
                Action::Decide { call } => self.decide(&call)?,
                Action::RunTool { call } => self.run_tool(&call)?,
                Action::RunHook => self.after_tools()?,
                Action::Wait { millis } => self.pause(millis)?,
                Action::EndTurn { how } => return Ok(how),
                Action::Quit => return Ok(TurnEnd::Interrupted),
                // Stopped work has stopped by the time its end is published, and closed calls were closed in
                // the same operation.
                Action::StopModel | Action::StopTool { .. } | Action::CloseCall { .. } => {}
            }
        }
    }

    /// Ends the record of the turn. Messages that arrived too late for the model stay in the conversation.
    fn record_late_messages(&mut self) -> Result<(), TurnError> {
        let mut entries = self.undelivered_messages()?;
        entries.extend(self.take_steering_entries());
        if !entries.is_empty() {
            let add = Command::AddEntries { take: self.take, at: InsertPosition::End, entries };
            self.version = self.runtime.timeline.change(self.thread, add, self.caller(Actor::Human))?.version;
        }
        self.published.clear();
        self.runtime_database.end_turn(self.take)?;
        Ok(())
    }

    /// Advances the state. The new state and its entries are on disk before its actions start.
    pub(super) fn advance(
        &mut self,
        event: Event,
        entries: Vec<NewEntry>,
        turn_step: TurnStep,
        actor: Actor,
    ) -> Result<(), TurnError> {
        let (advance, actions) = self.next(event, entries, turn_step);
        let state = advance.state.clone();
        let done = self.publish(advance, self.caller(actor))?;
        self.arrived(&done, state, actions);
        self.delete_published_messages()
    }

    /// Adds entries without changing the state.
    pub(super) fn add(
        &mut self,
        entries: Vec<NewEntry>,
        turn_step: TurnStep,
        actor: Actor,
    ) -> Result<(), TurnError> {
        let advance = TurnAdvance {
            turn: self.turn,
            entries,
            settings: Vec::new(),
            state: self.state.clone(),
            step: turn_step,
        };
        self.version = self.publish(advance, self.caller(actor))?.version;
        self.delete_published_messages()
    }

    fn publish(&self, advance: TurnAdvance, caller: Caller) -> Result<ChangeOutcome, TurnError> {
        let command = Command::AdvanceTurn { take: self.take, advance };
        Ok(self.runtime.timeline.change(self.thread, command, caller)?)
    }

    /// The current version of the thread.
    pub(super) fn newest(&self) -> Result<Version, TurnError> {
        Ok(self.runtime.timeline.read()?.thread(self.thread)?.summary.version)
    }

    /// Like `advance`, before or after a tool works in the folder; records and counts the files that it
    /// changed.
    pub(super) fn advance_around_tool(
        &mut self,
        event: Event,
        entries: Vec<NewEntry>,
        turn_step: TurnStep,
        actor: Actor,
        phase: ToolPhase,
        named: Option<&[TreePath]>,
    ) -> Result<u64, TurnError> {
        let Some(working_copy) = &self.runtime.working_copy else {
            self.advance(event, entries, turn_step, actor)?;
            return Ok(0);
        };
        let (advance, actions) = self.next(event, entries, turn_step);
        let caller = self.caller(actor);
        let advanced = working_copy.advance(self.thread, self.take, advance.clone(), caller, phase, named)?;
        self.arrived(&advanced.done, advance.state, actions);
        self.delete_published_messages()?;
        Ok(advanced.paths)
    }

    fn next(
        &mut self,
        event: Event,
        mut entries: Vec<NewEntry>,
        turn_step: TurnStep,
    ) -> (TurnAdvance, Vec<Action>) {
        let stops = matches!(event, Event::Interrupted | Event::Faulted { .. });
        let ends = stops || event == Event::Resumed;
        let hook = matches!(event, Event::ToolEnded { .. } | Event::ToolDenied { .. });
        let dice = self.runtime.timeline.random_u64();
        let batch = if event == Event::HookDone { self.next_batch() } else { None };
        let (mut state, mut actions) = match batch {
            Some(calls) => self.executing(calls),
            None => step(&self.state, event, &self.runtime.retry_policy, dice),
        };
        for action in &actions {
            if let Action::CloseCall { call } = action {
                entries.push(self.closed(call));
            }
        }
        if stops {
            let later = std::mem::take(&mut self.later);
            entries.extend(later.iter().map(|(call, _)| self.closed(call)));
        }
        // Nothing comes between the last result and the next call, so both are one step.
        if hook && actions == [Action::RunHook] {
            if let Some(calls) = self.next_batch() {
                (state, actions) = self.executing(calls);
            } else {
                entries.extend(self.take_steering_entries());
                (state, actions) = step(&state, Event::HookDone, &self.runtime.retry_policy, dice);
            }
        }
        if ends {
            self.queue.clear();
        }
        (TurnAdvance { turn: self.turn, entries, settings: Vec::new(), state, step: turn_step }, actions)
    }

    /// The state in which these calls are decided and run.
    fn executing(&self, calls: Vec<NamedCall>) -> (AgentState, Vec<Action>) {
        let answering = AgentState::Processing { attempt: 1, steered: false };
        step(&answering, Event::Answered { calls }, &self.runtime.retry_policy, 0)
    }

    fn arrived(&mut self, done: &ChangeOutcome, state: AgentState, actions: Vec<Action>) {
        // The driver's own steps do not change the answer. After a change by another writer, it is read
        // again.
        if let Some(known) = self.known.as_mut().filter(|known| known.version + 1 == done.version) {
            known.version = done.version;
        }
        self.version = done.version;
        self.checked_version = done.version;
        self.operation = done.operation;
        if let AgentState::Failed { message, .. } = &state {
            self.message = Some(message.clone());
        }
        self.state = state;
        // New actions come before queued ones: a call runs before the next one is decided.
        for action in actions.into_iter().rev() {
            self.queue.push_front(action);
        }
    }

    fn caller(&self, actor: Actor) -> Caller {
        let environment = self.runtime.environment.clone();
        Caller { actor, environment, turn: Some(self.turn), ..Caller::human() }
    }

    /// The result of an interrupted call.
    fn closed(&self, call: &str) -> NewEntry {
        let now = self.runtime.timeline.now();
        entries::result(call, INTERRUPTED.to_owned(), true, Fields::default(), now).into()
    }

    /// Whether the take has an entry.
    pub(super) fn holds(&self, entry: EntryId) -> Result<bool, TurnError> {
        let reader = self.runtime.timeline.read()?;
        let state = reader.state(self.thread)?;
        let take = state.take(&reader.queries(), self.take)?.ok_or(TurnError::NoSuchTake)?;
        Ok(reader.entries(self.thread, &take).get(entry)?.is_some())
    }

    fn after_tools(&mut self) -> Result<(), TurnError> {
        // A message must not come between the results of one answer.
        let steered = if self.later.is_empty() { self.take_steering_entries() } else { Vec::new() };
        self.advance(Event::HookDone, steered, TurnStep::CalledAgain, Actor::Agent)
    }

    /// Waits before a retry.
    fn pause(&mut self, millis: u64) -> Result<(), TurnError> {
        if let AgentState::Failed { message, attempts, .. } = &self.state {
            let event = TurnEvent::Retrying { message: message.clone(), millis, attempt: *attempts };
            self.observer.on_event(&event);
        }
        if self.wait(Duration::from_millis(millis))? {
            return self.interrupt(Vec::new());
        }
        self.message = None;
        let steered = self.take_steering_entries();
        self.advance(Event::RetryDue, steered, TurnStep::CalledAgain, Actor::Agent)
    }

    /// Ends the turn at the user's request.
    pub(super) fn interrupt(&mut self, entries: Vec<NewEntry>) -> Result<(), TurnError> {
        let mut entries = entries;
        entries.extend(self.take_steering_entries());
        self.advance(Event::Interrupted, entries, TurnStep::Interrupted, Actor::Human)
    }

    /// Ends the attempt after a failure.
    pub(super) fn fail(&mut self, fault: Fault, entries: Vec<NewEntry>) -> Result<(), TurnError> {
        let turn_step = TurnStep::Failed { message: fault.message.clone() };
        self.advance(Event::Faulted { fault }, entries, turn_step, Actor::Agent)
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

    pub(super) fn trace(&self) -> TraceWriter<'_> {
        TraceWriter {
            runtime_database: &self.runtime_database,
            thread: self.thread,
            take: self.take,
            turn: self.turn,
        }
    }
}
