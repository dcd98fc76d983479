//! `retake undo`

use clap::Args;
use retake_timeline::Goal;

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
  retake undo --dry-run                   what would happen to which file
  retake undo --conversation              leave the files as they are
  retake undo --expect 12                 only if nothing happened since version 12
  retake undo -k second                   in another take than the active one

Undo belongs to a take: the work of other takes and threads is not touched, in the conversation or in files. A file that
was changed since is merged; where that does not work it stays as it is, and both versions are kept. Nothing is
lost by it: `retake redo` makes it again, and `retake jump` reaches every state there ever was.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    steps: Steps,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        self.steps.go(context, "Undid", Goal::Undo)
    }
}
