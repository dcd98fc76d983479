//! `retake stop`

use clap::Args;
use retake_agent::{SendError, TurnHandle};
use serde::Serialize;

use crate::agent::AgentFlags;
use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::Failure;

/// Stop the running turn of a take, from any terminal, or close one whose process exited or was killed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake stop
  retake stop --take main_take_1

The partial answer is saved, and a running tool is stopped. `retake undo` undoes the whole turn.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    /// Whether a running turn was asked to stop.
    stopped: bool,
    /// Whether an unfinished turn was closed.
    closed: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &Target::from(&self.target))?;
        let sender = TurnHandle::new(context.timeline()?)?;
        let answer = match sender.interrupt(resolved.take.id) {
            Ok(()) => Answer { stopped: true, closed: false },
            Err(SendError::NoTurnRunning) => {
                let settings =
                    context.timeline()?.read()?.settings(resolved.thread.summary.id).effective()?;
                let runtime = context.runtime(
                    (resolved.thread.summary.id, resolved.take.id),
                    &settings,
                    &AgentFlags::default(),
                )?;
                let closed = runtime.close(resolved.thread.summary.id, resolved.take.id)?;
                if !closed {
                    return Err(SendError::NoTurnRunning.into());
                }
                Answer { stopped: false, closed }
            }
            Err(error) => return Err(error.into()),
        };
        context.report(&answer, |out, _| {
            writeln!(
                out,
                "{}",
                if answer.stopped { "Stopping the turn." } else { "Closed the unfinished turn." }
            )
        })
    }
}
