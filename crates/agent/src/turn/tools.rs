//! Runs tools: marks the call as running on disk first, then publishes result and files in one operation.

use std::time::{Duration, Instant};

use retake_model::agent::{Event, Fault, FaultOrigin, ToolOutcome};
use retake_model::command::NewEntry;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, Fields};
use retake_model::operation::{Actor, TurnStep};
use retake_timeline::{FileError, ToolPhase};

use super::driver::{Driver, StepRecord};
use super::entries::{self, number};
use super::event::TurnEvent;
use super::progress::{Mailbox, MailboxItem, Report};
use super::publisher::ToolFiles;
use super::turn_handle::MESSAGE_POLL_INTERVAL;
use super::{TurnError, calls};
use crate::approval;
use crate::tools::{self, Call, Output, ToolContext, TouchedPaths};
use crate::trace::TraceRecord;

/// Minimum time between progress events.
const BETWEEN_REPORTS: Duration = Duration::from_millis(20);

impl Driver<'_> {
    /// Marks a call as allowed on disk before it runs.
    pub(super) fn allow(&mut self, call: &Call) -> Result<(), TurnError> {
        let event = Event::ToolAllowed { call: call.id.clone() };
        let step = TurnStep::ToolStarted { call: call.id.clone(), tool: call.name.clone() };
        let actor = actor(call);
        if !tools::may_write(&call.name) {
            return self.advance(event, Vec::new(), step, actor);
        }
        let named = match tools::touched_paths(call, &self.runtime.folder) {
            TouchedPaths::Paths(named) => Some(named),
            TouchedPaths::Nothing => Some(Vec::new()),
            TouchedPaths::Anything => None,
        };
        let record = StepRecord { event, entries: Vec::new(), step, actor };
        let files = ToolFiles { phase: ToolPhase::Before, named: named.as_deref() };
        match self.advance_with_files(record, &files) {
            Err(TurnError::Files(error @ FileError::OtherTake)) => self.fail(tool_fault(&error), Vec::new()),
            other => other.map(drop),
        }
    }

    /// Runs an allowed call.
    pub(super) fn run_tool(&mut self, id: &str) -> Result<(), TurnError> {
        let Some((call, _)) = self.call_of(id)? else {
            return self.fail(calls::missing_call(), Vec::new());
        };
        let what = approval::describe(&call).what.into_iter().next().unwrap_or_default();
        self.observer.on_event(&TurnEvent::ToolStarted {
            call: call.id.clone(),
            tool: call.name.clone(),
            what,
        });
        self.session
            .trace()
            .log(self.runtime.timeline.now(), &TraceRecord::Call { runtime: self.runtime, call: &call })?;
        let began = Instant::now();
        let output = self.work(&call, None, progress_event)?;
        let number = self.session.trace().log(
            self.runtime.timeline.now(),
            &TraceRecord::Result {
                runtime: self.runtime,
                call: &call,
                output: &output,
                millis: began.elapsed().as_millis() as u64,
            },
        )?;
        let outcome = match (&output, self.cancel.is_set()) {
            (Output { failed: true, .. }, true) => ToolOutcome::Interrupted,
            (Output { failed: true, .. }, false) => ToolOutcome::Failed,
            _ => ToolOutcome::Succeeded,
        };
        let entry = self.result(&call, &output, number);
        let event = Event::ToolEnded { call: call.id.clone(), outcome };
        let step = TurnStep::ToolEnded { call: call.id.clone(), tool: call.name.clone(), outcome };
        let files = if tools::may_write(&call.name) {
            self.calls.may_have_changed = true;
            let record = StepRecord { event, entries: vec![entry], step, actor: actor(&call) };
            let files =
                self.advance_with_files(record, &ToolFiles { phase: ToolPhase::After, named: None })?;
            self.calls.has_changed |= files > 0 || self.runtime.working_copy.is_none();
            files
        } else {
            self.advance(event, vec![entry], step, actor(&call))?;
            0
        };
        let Call { id, name, .. } = call;
        self.observer.on_event(&TurnEvent::ToolEnded {
            call: id,
            tool: name,
            outcome,
            text: output.text,
            files,
        });
        if self.cancel.is_set() { self.interrupt(Vec::new()) } else { Ok(()) }
    }

    /// Runs the tool in its own thread and forwards progress.
    ///
    /// A slow observer thus cannot keep the tool from stopping.
    pub(super) fn work(
        &mut self,
        call: &Call,
        time: Option<Duration>,
        progress_event: fn(&Call, Report) -> TurnEvent,
    ) -> Result<Output, TurnError> {
        let mut context = ToolContext::open(&self.runtime.folder)?;
        context.environment = std::env::vars_os().collect();
        context.hidden.clone_from(&self.runtime.hidden);
        context.denied_paths = self.runtime.approval.denied_paths();
        context.limits.longest_time = time.unwrap_or(context.limits.longest_time);
        let (mailbox, cancel) = (Mailbox::default(), self.cancel.clone());
        std::thread::scope(|scope| {
            let tool = scope.spawn(|| {
                // Does not panic: errors of tools are outputs.
                let output = tools::run(call, &context, &cancel, &mut |progress| mailbox.push(progress));
                mailbox.close();
                output
            });
            let mut listening = Ok(());
            let mut read = Instant::now();
            loop {
                match mailbox.take(MESSAGE_POLL_INTERVAL) {
                    MailboxItem::Report(report) => {
                        self.observer.on_event(&progress_event(call, report));
                        mailbox.gather(BETWEEN_REPORTS);
                    }
                    MailboxItem::Nothing => {}
                    MailboxItem::Closed => break,
                }
                if listening.is_ok() && read.elapsed() >= MESSAGE_POLL_INTERVAL {
                    listening = self.read_messages();
                    read = Instant::now();
                    if listening.is_err() {
                        self.cancel.set();
                    }
                }
            }
            let output = tool.join().unwrap_or_else(|_| Output {
                text: "The tool failed unexpectedly.".to_owned(),
                failed: true,
                ..Output::default()
            });
            listening.map(|()| output)
        })
    }

    fn result(&self, call: &Call, output: &Output, trace_number: i64) -> NewEntry {
        let extra: Fields = match output.whole {
            // The trace record with the full output.
            Some(_) => [("whole_output_in_comms".to_owned(), number(trace_number.unsigned_abs()))]
                .into_iter()
                .collect(),
            None => Fields::default(),
        };
        let now = self.runtime.timeline.now();
        let mut version = entries::result(&call.id, output.text.clone(), output.failed, extra, now);
        let mut blobs = Vec::new();
        for image in &output.images {
            let blob = ContentId::of(Kind::Blob, &image.bytes);
            version.blocks.push(Block::Image {
                media: image.media.to_owned(),
                blob,
                extra: Fields::default(),
            });
            blobs.push(image.bytes.clone());
        }
        NewEntry { id: None, version, blobs }
    }
}

fn actor(call: &Call) -> Actor {
    Actor::ToolCall { call: call.id.clone() }
}

fn tool_fault(error: &FileError) -> Fault {
    Fault { origin: FaultOrigin::Tool, message: error.to_string(), retryable: false, retry_after: None }
}

fn progress_event(call: &Call, report: Report) -> TurnEvent {
    let Report { fraction, message, units, output, omitted } = report;
    TurnEvent::ToolProgress {
        call: call.id.clone(),
        fraction,
        message,
        units_processed: units.map(|units| units.processed),
        unit: units.map(|units| units.name.to_owned()),
        text: output,
        omitted_bytes: omitted,
    }
}
