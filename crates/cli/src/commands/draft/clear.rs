//! `retake draft clear`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Clear the text and attachments of the draft.
#[derive(Args)]
#[command(after_help = "Example:\n  retake draft clear")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let clear = Command::ClearDraft { take: resolved.take.id };
        super::change(context, &resolved, clear, self.target.expect, None)
    }
}
