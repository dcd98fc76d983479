//! `retake stop`

use clap::Args;
use retake_agent::{Sender, Unreached};
use serde::Serialize;

use crate::agent::AgentFlags;
use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// End the turn that runs in a take, in whatever terminal, or close one whose program was killed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake stop
  retake stop --take main_take_1

What arrived so far is kept, and a running tool is stopped. `retake undo` takes the whole turn back.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    /// Whether a turn was running that was told to end.
    stopped: bool,
    /// Whether a turn was left unfinished that was closed.
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
                if answer.stopped { "Told it to end." } else { "Closed the unfinished turn." }
            )
        })
    }
}
