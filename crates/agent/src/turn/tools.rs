//! Runs tools: marks the call as running on disk first, then publishes result and files in one operation.

use std::time::{Duration, Instant};

use retake_model::agent::{Event, Fault, Origin, ToolOutcome};
use retake_model::command::NewEntry;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, Fields};
use retake_model::operation::{Actor, TurnStep};
use retake_timeline::{Around, FileError};

use super::TurnError;
use super::driver::Driver;
use super::entries::{self, number};
use super::event::TurnEvent;
use super::letters::LETTERS;
use super::progress::{Mailbox, Report, Taken};
use crate::approval;
use crate::comms::Said;
use crate::tools::{self, Call, Output, Reach, Room, Touches};

/// Minimum time between progress events.
const BETWEEN_REPORTS: Duration = Duration::from_millis(20);

impl Driver<'_> {
    /// Marks a call as allowed on disk before it runs.
    pub(super) fn allow(&mut self, call: &Call) -> Result<(), TurnError> {
        let event = Event::ToolAllowed { call: call.id.clone() };
        let step = TurnStep::ToolRuns { call: call.id.clone(), tool: call.name.clone() };
        let actor = actor(call);
        if writes(call) {
            let named = match tools::touches(call, &self.shop.folder) {
                Touches::Paths(named) => Some(named),
                Touches::Nothing => Some(Vec::new()),
                Touches::Anything => None,
            };
            match self.go_around(event, Vec::new(), step, actor, Around::Before, named.as_deref()) {
                Err(TurnError::Files(error @ FileError::OtherTake)) => {
                    let message = error.to_string();
                    let fault = Fault { origin: Origin::Tool, message, retryable: false, retry_after: None };
                    return self.fail(fault, Vec::new());
                }
                other => _ = other?,
            }
        } else {
            self.go(event, Vec::new(), step, actor)?;
        }
        Ok(())
    }

    /// Runs an allowed call.
    pub(super) fn run_tool(&mut self, id: &str) -> Result<(), TurnError> {
        let Some((call, _)) = self.call_of(id)? else {
            return self.fail(Self::missing_call(), Vec::new());
        };
        let what = approval::describe(&call).what.into_iter().next().unwrap_or_default();
        self.audience.hear(&TurnEvent::ToolRuns { call: call.id.clone(), tool: call.name.clone(), what });
        self.comms().log(self.shop.timeline.now(), &Said::Call { shop: self.shop, call: &call })?;
        let began = Instant::now();
        let output = self.work(&call)?;
        let number = self.comms().log(
            self.shop.timeline.now(),
            &Said::Result {
                shop: self.shop,
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
        let files = if writes(&call) {
            self.go_around(event, vec![entry], step, actor(&call), Around::After, None)?
        } else {
            self.go(event, vec![entry], step, actor(&call))?;
            0
        };
        let Call { id, name, .. } = call;
        self.audience.hear(&TurnEvent::ToolEnded { call: id, tool: name, outcome, text: output.text, files });
        if self.cancel.is_set() { self.interrupt(Vec::new()) } else { Ok(()) }
    }

    /// Runs the tool in its own thread and forwards progress.
    ///
    /// A slow observer thus cannot keep the tool from stopping.
    fn work(&mut self, call: &Call) -> Result<Output, TurnError> {
        let mut room = Room::open(&self.shop.folder)?;
        room.environment = std::env::vars_os().collect();
        room.hidden.clone_from(&self.shop.hidden);
        room.closed = self.shop.approval.closed();
        let (mailbox, cancel) = (Mailbox::default(), self.cancel.clone());
        std::thread::scope(|scope| {
            let tool = scope.spawn(|| {
                // Does not panic: errors of tools are outputs.
                let output = tools::run(call, &room, &cancel, &mut |progress| mailbox.push(progress));
                mailbox.close();
                output
            });
            let mut listening = Ok(());
            let mut read = Instant::now();
            loop {
                match mailbox.take(LETTERS) {
                    Taken::Report(report) => {
                        self.audience.hear(&progress_event(call, report));
                        mailbox.gather(BETWEEN_REPORTS);
                    }
                    Taken::Nothing => {}
                    Taken::Closed => break,
                }
                if listening.is_ok() && read.elapsed() >= LETTERS {
                    listening = self.read_letters();
                    read = Instant::now();
                    if listening.is_err() {
                        self.cancel.set();
                    }
                }
            }
            let output = tool.join().unwrap_or_else(|_| Output {
                text: "The tool broke down.".to_owned(),
                failed: true,
                ..Output::default()
            });
            listening.map(|()| output)
        })
    }

    fn result(&self, call: &Call, output: &Output, comm: i64) -> NewEntry {
        let extra: Fields = match output.whole {
            // The trace record with the full output.
            Some(_) => {
                [("whole_output_in_comms".to_owned(), number(comm.unsigned_abs()))].into_iter().collect()
            }
            None => Fields::default(),
        };
        let now = self.shop.timeline.now();
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

/// Whether a call can change files.
fn writes(call: &Call) -> bool {
    tools::find(&call.name).is_some_and(|tool| tool.reach != Reach::Reads)
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
