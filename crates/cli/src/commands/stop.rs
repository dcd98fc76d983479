//! `retake stop`

use clap::Args;
use retake_agent::{Sender, Unreached};
use serde::Serialize;

use crate::agent::AgentFlags;
use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Stop the running turn of a take, from any terminal, or close one whose process was killed.
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
        let meant = context.meant(&context.timeline()?.look()?, &Target::from(&self.target))?;
        let sender = Sender::new(context.timeline()?)?;
        let answer = match sender.interrupt(meant.take.id) {
            Ok(()) => Answer { stopped: true, closed: false },
            Err(Unreached::NothingRuns) => {
                let settings = context.timeline()?.look()?.effective_settings(meant.thread.summary.id)?;
                let shop = context.workshop(
                    (meant.thread.summary.id, meant.take.id),
                    &settings,
                    &AgentFlags::default(),
                )?;
                let closed = shop.close(meant.thread.summary.id, meant.take.id)?;
                if !closed {
                    return Err(Failure::new(Code::NotFound, "no turn is running in this take"));
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
