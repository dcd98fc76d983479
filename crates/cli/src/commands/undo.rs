//! `retake undo`

use clap::Args;
use retake_timeline::Goal;

use super::history_move::Steps;
use crate::context::Context;
use crate::failure::Failure;

/// Undo the last turn, or the last N turns.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake undo
  retake undo 3
  retake undo --to turn:3                 everything after turn 3
  retake undo --step                      one operation, not the whole turn
  retake undo --dry-run                   preview the file changes
  retake undo --conversation              do not change files
  retake undo --expect 12                 only if the thread is still at version 12
  retake undo -k second                   in another take

Undo affects one take: messages and file changes of other takes and threads are kept. Files that changed since are \
merged; if a merge fails, the file is left as it is and both versions are kept. Nothing is lost: `retake redo` redoes \
the turn, and `retake jump` reaches every version.")]
pub(crate) struct Arguments {
    /// Undo everything after this version: `turn:NUMBER`, a number or a saved name.
    #[arg(long, value_name = "VERSION", conflicts_with = "count")]
    to: Option<String>,
    #[command(flatten)]
    steps: Steps,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        self.steps.run_move(context, "Undid", self.to.as_deref(), Goal::Undo)
    }
}
