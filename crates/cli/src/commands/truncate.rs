//! `retake truncate`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Keep only the last exchanges of a take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake truncate 3
  retake truncate 0 -k main_take_2        the same as `retake clear -k main_take_2`

A pair is a user entry and everything up to the next one: answers, tool results and notes.")]
pub(crate) struct Arguments {
    /// Number of pairs of user and AI entries to keep.
    pairs: u64,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let truncate = Command::Truncate { take: resolved.take.id, pairs: self.pairs };
        context.change_and_report(resolved.thread.summary.id, truncate, self.target.expect)
    }
}
