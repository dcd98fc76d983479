//! `retake steer`

use clap::Args;
use retake_agent::{SendError, TurnHandle};
use retake_model::id::EntryId;
use serde::Serialize;

use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Send a message to the running turn. The model gets it with its next request.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake steer \"Leave the tests alone\"
  retake steer --take main_take_1 \"Use the old parser\"")]
pub(crate) struct Arguments {
    /// The message.
    message: String,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    /// The entry that the message becomes.
    entry: EntryId,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.message.trim().is_empty() {
            return Err(Failure::new(Code::Usage, "the message is empty"));
        }
        let resolved = context.resolve(&context.timeline()?.read()?, &Target::from(&self.target))?;
        let sender = TurnHandle::new(context.timeline()?)?;
        match sender.steer(resolved.take.id, &self.message) {
            Ok(entry) => context.report(&Answer { entry }, |out, _| writeln!(out, "Message sent.")),
            Err(error @ SendError::NoTurnRunning) => {
                let message = format!("{error}; `retake run` starts one");
                Err(Failure::new(Code::NoTurn, message))
            }
            Err(error) => Err(error.into()),
        }
    }
}
