//! `retake thread rename`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Rename a thread.
#[derive(Args)]
#[command(after_help = "\
Example:
  retake thread rename \"Fix the login for good\"")]
pub(crate) struct Arguments {
    /// New title.
    title: String,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?;
        context.change_and_report(
            thread.summary.id,
            Command::Rename { title: self.title },
            self.target.expect,
        )
    }
}
