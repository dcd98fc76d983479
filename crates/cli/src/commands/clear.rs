//! `retake clear`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Remove all entries from a take. To clear drafts, file lists and settings too, use `retake reset`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake clear
  retake undo                             restores them")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let clear = Command::Clear { take: resolved.take.id };
        context.change_and_report(resolved.thread.summary.id, clear, self.target.expect)
    }
}
