//! Running a tool: on disk as running before it runs, its result and its files in one operation after.

use std::sync::mpsc;
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
use crate::approval;
use crate::comms::Said;
use crate::tools::{self, Call, Output, Progress, Reach, Room};

/// How often letters are read while a tool runs.
const LETTERS: Duration = Duration::from_millis(100);

impl Driver<'_> {
    /// A call may run: that is on disk before it does.
    pub(super) fn allow(&mut self, call: &Call) -> Result<(), TurnError> {
        let event = Event::ToolAllowed { call: call.id.clone() };
        let step = TurnStep::ToolRuns { call: call.id.clone(), tool: call.name.clone() };
        let actor = actor(call);
        if writes(call) {
            match self.go_around(event, Vec::new(), step, actor, Around::Before) {
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

    /// Runs a call that was allowed.
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
            self.go_around(event, vec![entry], step, actor(&call), Around::After)?
        } else {
            self.go(event, vec![entry], step, actor(&call))?;
            0
        };
        let Call { id, name, .. } = call;
        self.audience.hear(&TurnEvent::ToolEnded { call: id, tool: name, outcome, text: output.text, files });
        if self.cancel.is_set() { self.interrupt(Vec::new()) } else { Ok(()) }
    }

    /// Runs the tool in a thread of its own, and passes on what it says.
    fn work(&mut self, call: &Call) -> Result<Output, TurnError> {
        let mut room = Room::open(&self.shop.folder)?;
        room.environment = std::env::vars_os().collect();
        room.hidden.clone_from(&self.shop.hidden);
        room.closed = self.shop.approval.closed();
        let (sender, receiver) = mpsc::channel::<Progress>();
        let cancel = self.cancel.clone();
        std::thread::scope(|scope| {
            let tool = scope.spawn({
                let room = &room;
                move || {
                    tools::run(call, room, &cancel, &mut |progress| {
                        // Nobody listens any more once the turn has failed.
                        let _ = sender.send(progress);
                    })
                }
            });
            let mut listening = Ok(());
            loop {
                match receiver.recv_timeout(LETTERS) {
                    Ok(Progress { fraction, message, chunk }) => {
                        let text = if chunk.is_empty() { message } else { chunk };
                        let event = TurnEvent::ToolProgress { call: call.id.clone(), fraction, text };
                        self.audience.hear(&event);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        if listening.is_ok() {
                            listening = self.read_letters();
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
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
            // Where all of it can be read that the model was not shown.
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
