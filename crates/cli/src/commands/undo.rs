//! `retake undo`

use clap::Args;
use retake_timeline::Timeline;

use super::moving::Steps;
use crate::context::Context;
use crate::failure::Failure;

/// Take back the last turn, or the last N.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake undo
  retake undo 3
  retake undo --step                      one operation, not the whole turn
  retake undo --expect 12                 only if nothing happened since version 12

Undo belongs to the thread: another thread's work is not touched. Nothing is lost by it: `retake redo` makes
it again, and `retake jump` reaches every state there ever was.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    steps: Steps,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        self.steps.go(context, "Undid", Timeline::undo)
    }
}
