//! `retake redo`

use clap::Args;
use retake_timeline::Goal;

use super::history_move::Steps;
use crate::context::Context;
use crate::failure::Failure;

/// Redo turns.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake redo
  retake redo 3
  retake redo --step                      one operation, not the whole turn

A new change after an undo ends the redo history; `retake jump` still reaches the undone versions.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    steps: Steps,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        self.steps.run_move(context, "Redid", None, Goal::Redo)
    }
}
