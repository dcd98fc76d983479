//! Sends requests to the model and reads the answers.
//!
//! The answer is read in another thread. The partial answer is saved outside of the log at short intervals
//! and becomes an entry when complete, so that tokens need no sync and a crash loses little.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use retake_model::agent::{Event, Fault, FaultOrigin};
use retake_model::command::{CommandError, NewEntry};
use retake_model::entry::{Block, Fields};
use retake_model::id::EntryId;
use retake_model::operation::{Actor, TurnStep};
use retake_model::projection::Thoughts;
use retake_model::turn::PartialAnswer;
use retake_timeline::ChangeError;

use super::batch::{self, AdmittedCalls};
use super::driver::Driver;
use super::entries::{self, AnswerRecord, INTERRUPTED, stop_reason};
use super::event::TurnEvent;
use super::turn_handle::MESSAGE_POLL_INTERVAL;
use super::{TurnError, calls, stops};
use crate::cancel::Cancel;
use crate::compress::{CompressError, CompressOptions, KeepRecent};
use crate::provider::{Answer, CallError, Delta, Fault as CallFault};
use crate::request::{OutputLimit, Request};
use crate::trace::TraceRecord;

/// Interval for saving the partial answer.
const PARTIAL_SAVE_INTERVAL: Duration = Duration::from_millis(400);
/// Chunks buffered for the driver, which a slow observer may block.
const PIECES: usize = 256;

/// The outcome of a request.
enum RequestOutcome {
    /// The answer or the failure is on disk.
    Done,
    /// The request was too long.
    TooLong(Fault),
    /// The provider refused its own thoughts.
    ThoughtsRefused,
}

/// The outcome of a request.
enum CallOutcome {
    Answer(Answer),
    Failure(CallError),
}

impl CallOutcome {
    fn as_result(&self) -> Result<&Answer, &CallError> {
        match self {
            Self::Answer(answer) => Ok(answer),
            Self::Failure(error) => Err(error),
        }
    }
}

/// The outcome of a compaction.
enum Compaction {
    Done,
    /// Nothing more can be removed.
    Nothing,
    /// The model returned no summary.
    Failed(CallError),
}

impl Driver<'_> {
    /// Calls the model and publishes its answer. Compresses the conversation first if it is too long.
    pub(super) fn call_model(&mut self) -> Result<(), TurnError> {
        self.accounting.rounds += 1;
        let mut size = self.runtime.window;
        let mut thoughts = Thoughts::Accepted;
        // The remaining entries may still be too long together with the summary and the prompt.
        let mut divisors = [3, 9, u64::MAX].into_iter();
        loop {
            self.read_messages()?;
            if self.cancel.is_set() {
                return self.interrupt(Vec::new());
            }
            if self.accounting.rounds > self.runtime.rounds {
                let message = format!(
                    "the model was called {} times in this turn, the limit of agent.rounds; `retake resume` continues",
                    self.runtime.rounds
                );
                return self.fail(setup(message), Vec::new());
            }
            let steered = self.take_steering_entries();
            if !steered.is_empty() {
                self.advance(Event::MessagesAdded, steered, TurnStep::CalledAgain, Actor::Human)?;
            }
            let (too_long, sent) = match self.request(thoughts) {
                Ok(request) => match self.ask_model(&request)? {
                    // Token counts are estimates; the provider's limit decides.
                    RequestOutcome::TooLong(fault) => {
                        size = size.min(request.tokens);
                        (fault, true)
                    }
                    RequestOutcome::ThoughtsRefused => {
                        thoughts = Thoughts::Omitted;
                        continue;
                    }
                    RequestOutcome::Done => return Ok(()),
                },
                Err(error @ TurnError::TooLong { .. }) => (setup(error.to_string()), false),
                Err(error) => return Err(error),
            };
            let Some(divisor) = divisors.next() else { return self.fail(too_long, Vec::new()) };
            match self.compact(size / divisor)? {
                Compaction::Done => {}
                // Another writer made the conversation shorter meanwhile.
                Compaction::Nothing if !sent && self.request(thoughts).is_ok() => {}
                Compaction::Nothing => return self.fail(too_long, Vec::new()),
                // Treat it like a failed answer, with the same retries.
                Compaction::Failed(error) => {
                    return self.record_failure(None, error);
                }
            }
        }
    }

    fn request(&self, thoughts: Thoughts) -> Result<Request, TurnError> {
        let limit = if self.call_failures.raise_limit { OutputLimit::Raised } else { OutputLimit::Usual };
        let (thread, take) = (self.session.thread(), self.session.take());
        Request::build(self.runtime, thread, take, self.machine.attempt(), thoughts, limit)
    }

    /// Sends a request and publishes the result, unless another request can help.
    fn ask_model(&mut self, request: &Request) -> Result<RequestOutcome, TurnError> {
        let (attempt, tokens) = (self.machine.attempt(), request.tokens);
        self.observer.on_event(&TurnEvent::Calling { attempt, tokens });
        let entry = EntryId::generate(&mut self.runtime.timeline.fresh());
        let began = Instant::now();
        self.session
            .trace()
            .log(self.runtime.timeline.now(), &TraceRecord::Request { runtime: self.runtime, request })?;
        let received = self.receive(request, entry)?;
        let millis = began.elapsed().as_millis() as u64;
        self.session.trace().log(
            self.runtime.timeline.now(),
            &TraceRecord::Answer { runtime: self.runtime, answer: received.as_result(), millis },
        )?;
        let partial = self.session.record.partial.take().is_some();
        let kept = self.session.record.state.take().is_some() || partial;
        let asked = match received {
            CallOutcome::Answer(mut answer) => {
                let limit = request.body.as_ref().and_then(stops::output_limit);
                stops::mark_cut_call(&mut answer, limit);
                self.record_answer((entry, request), &answer, limit)?;
                RequestOutcome::Done
            }
            CallOutcome::Failure(error)
                if error.fault == CallFault::TooLong && error.partial.blocks.is_empty() =>
            {
                RequestOutcome::TooLong(Fault::from(&error))
            }
            CallOutcome::Failure(error) if request.trail.omitted.is_none() && error.refuses_thoughts() => {
                RequestOutcome::ThoughtsRefused
            }
            CallOutcome::Failure(error) => {
                self.record_failure(Some((entry, request)), error)?;
                RequestOutcome::Done
            }
        };
        // Delete the partial answer only after its entry is published.
        if kept {
            self.session.save()?;
        }
        Ok(asked)
    }

    /// Replaces all but the last `tokens` tokens with a summary, and handles messages meanwhile.
    fn compact(&mut self, tokens: u64) -> Result<Compaction, TurnError> {
        let (runtime, thread, take) = (self.runtime, self.session.thread(), self.session.take());
        let knowing = CompressOptions { turn: Some(self.session.turn()), ..CompressOptions::default() };
        let (cancel, over) = (self.cancel.clone(), Cancel::new());
        let compressed = std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let _over = over.set_on_drop();
                runtime.compress(thread, take, KeepRecent::Tokens(tokens), knowing, &cancel)
            });
            let mut listening = Ok(());
            while !over.wait_timeout(MESSAGE_POLL_INTERVAL) {
                if listening.is_ok() {
                    listening = self.read_messages();
                }
                if listening.is_err() {
                    self.cancel.set();
                }
            }
            let compressed = work.join().unwrap_or_else(|_| Err(CompressError::Model(panicked())));
            listening.map(|()| compressed)
        })?;
        match compressed {
            Ok(compressed) => {
                self.observer.on_event(&TurnEvent::Compressed { removed: compressed.removed });
                Ok(Compaction::Done)
            }
            // "Too long" is the more useful message.
            Err(CompressError::Turn(TurnError::Change(ChangeError::Refused(
                CommandError::NothingToCompress,
            )))) => Ok(Compaction::Nothing),
            Err(CompressError::Turn(error)) => Err(error),
            // A partial summary is not an answer.
            Err(CompressError::Model(error)) => {
                Ok(Compaction::Failed(CallError { partial: Box::default(), ..error }))
            }
        }
    }

    /// Reads the answer to its end.
    fn receive(&mut self, request: &Request, entry: EntryId) -> Result<CallOutcome, TurnError> {
        let began = self.runtime.timeline.now();
        let (sender, receiver) = mpsc::sync_channel::<Delta>(PIECES);
        let cancel = self.cancel.clone();
        let runtime = self.runtime;
        std::thread::scope(|scope| {
            // Dropped with this closure, also on panic, so that the other thread does not wait for ever.
            let receiver = receiver;
            let cancel = &cancel;
            let call = scope.spawn(move || {
                runtime.backend.answer(request, cancel, &mut |delta| {
                    // If the turn failed, there is no receiver.
                    let _ = sender.send(delta);
                })
            });
            let mut buffer = AnswerBuffer::default();
            let mut listening = Ok(());
            let (mut kept, mut read) = (Instant::now(), Instant::now());
            loop {
                match receiver.recv_timeout(MESSAGE_POLL_INTERVAL) {
                    Ok(delta) => {
                        if !self.machine.state().is_processing() {
                            listening = listening.and_then(|()| self.begin_answer());
                        }
                        if let Some(event) = buffer.take(delta) {
                            self.observer.on_event(&event);
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if listening.is_ok() && read.elapsed() >= MESSAGE_POLL_INTERVAL {
                    read = Instant::now();
                    listening = self.read_messages();
                }
                if listening.is_ok() && buffer.is_new && kept.elapsed() >= PARTIAL_SAVE_INTERVAL {
                    kept = Instant::now();
                    let model = Some(self.runtime.backend.model().to_owned());
                    self.session.record.partial =
                        Some(PartialAnswer { entry, blocks: buffer.blocks(), model, began });
                    listening = self.session.save();
                }
                if listening.is_err() {
                    self.cancel.set();
                }
            }
            let answer = call.join().unwrap_or_else(|_| Err(panicked()));
            listening?;
            Ok(answer.map_or_else(CallOutcome::Failure, CallOutcome::Answer))
        })
    }

    /// Shows that the answer has begun. The state is beside the log: a token is not an operation.
    fn begin_answer(&mut self) -> Result<(), TurnError> {
        self.note(Event::AnswerBegan);
        self.session.record.state = Some(self.machine.state().clone());
        self.session.save()
    }

    fn record_answer(
        &mut self,
        (id, request): (EntryId, &Request),
        answer: &Answer,
        limit: Option<u64>,
    ) -> Result<(), TurnError> {
        // Messages that arrived meanwhile decide whether this is the last answer.
        self.read_messages()?;
        let micro_dollars = self.accounting.count(self.runtime, answer.usage.as_ref());
        let new = self.entry((id, request), answer, micro_dollars, false);
        if let Some(fault) = stops::nothing_said(answer, limit, self.machine.attempt()) {
            // An empty answer would end the turn without a visible result.
            let kept = if fault.retryable { None } else { new };
            return self.fail(fault, kept.into_iter().collect());
        }
        if let Some(fault) = self.call_failures.repeated(answer, limit) {
            let now = self.runtime.timeline.now();
            let failed = |block: &Block| {
                let (call, why) = calls::read(block)?;
                let why = why.unwrap_or_else(|| INTERRUPTED.to_owned());
                Some(entries::result(&call.id, why, true, Fields::default(), now).into())
            };
            let results: Vec<NewEntry> = answer.blocks.iter().filter_map(failed).collect();
            return self.fail(fault, new.into_iter().chain(results).collect());
        }
        let AdmittedCalls { calls, results, events } = batch::admit(self.runtime, answer);
        self.calls.queue(calls.clone());
        let entries = new.into_iter().chain(results).collect();
        self.advance(Event::Answered { calls }, entries, TurnStep::Answered, Actor::Agent)?;
        let usage = answer.usage.clone();
        let stop = stop_reason(&answer.stop);
        let stop_detail = stops::stop_words(answer, limit);
        self.observer.on_event(&TurnEvent::Answered { entry: id, usage, micro_dollars, stop, stop_detail });
        for refused in &events {
            self.observer.on_event(refused);
        }
        Ok(())
    }

    /// Records a failed request, or a compression that failed before it.
    fn record_failure(
        &mut self,
        sent: Option<(EntryId, &Request)>,
        error: CallError,
    ) -> Result<(), TurnError> {
        let interrupted = error.fault == CallFault::Interrupted || self.cancel.is_set();
        let fault = Fault::from(&error);
        let micro_dollars = self.accounting.count(self.runtime, error.partial.usage.as_ref());
        // The partial answer before a retry would appear twice in the conversation; the trace has it. After
        // the last attempt it stays.
        let kept = sent.filter(|_| interrupted || !self.is_retried(&fault));
        let new = kept.and_then(|sent| self.entry(sent, &error.partial, micro_dollars, true));
        let entries = new.into_iter().collect();
        if interrupted { self.interrupt(entries) } else { self.fail(fault, entries) }
    }

    fn entry(
        &self,
        (id, request): (EntryId, &Request),
        answer: &Answer,
        micro_dollars: Option<u64>,
        interrupted: bool,
    ) -> Option<NewEntry> {
        AnswerRecord {
            id,
            answer,
            provider: self.runtime.backend.provider(),
            model: self.runtime.backend.model(),
            micro_dollars,
            estimate: Some(request.estimate),
            interrupted,
            trail: &request.trail,
            time: self.runtime.timeline.now(),
        }
        .entry()
    }
}

/// The partial answer.
#[derive(Default)]
struct AnswerBuffer {
    parts: Vec<Block>,
    is_new: bool,
}

impl AnswerBuffer {
    /// Adds a delta; returns the event for the observer.
    fn take(&mut self, delta: Delta) -> Option<TurnEvent> {
        match delta {
            Delta::Text(text) => {
                self.is_new = true;
                match self.parts.last_mut() {
                    Some(Block::Text { text: last, .. }) => last.push_str(&text),
                    _ => self.parts.push(Block::of_text(text.clone())),
                }
                Some(TurnEvent::Text { text })
            }
            Delta::Thinking(text) => {
                self.is_new = true;
                match self.parts.last_mut() {
                    Some(Block::Thinking { text: thought, .. }) => thought.push_str(&text),
                    _ => self.parts.push(Block::Thinking {
                        text: text.clone(),
                        signature: None,
                        extra: Fields::default(),
                    }),
                }
                Some(TurnEvent::Thinking { text })
            }
            Delta::CallStarted { call, name, .. } => Some(TurnEvent::CallStarted { call, tool: name }),
            // Drop an incomplete call: it has not run, and its input is invalid.
            Delta::CallInput { .. } | Delta::CallEnded { .. } | Delta::Usage(_) => None,
        }
    }

    fn blocks(&mut self) -> Vec<Block> {
        self.is_new = false;
        self.parts.clone()
    }
}

fn setup(message: String) -> Fault {
    Fault { origin: FaultOrigin::Setup, message, retryable: false, retry_after: None }
}

fn panicked() -> CallError {
    CallError {
        fault: CallFault::Protocol,
        status: None,
        retryable: false,
        retry_after: None,
        message: "the answer could not be read: the reader failed unexpectedly".to_owned(),
        partial: Box::default(),
    }
}
