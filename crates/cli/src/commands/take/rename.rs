//! `retake take rename`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Rename a take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take rename shorter              the active take
  retake take rename --take main_take_2 shorter")]
pub(crate) struct Arguments {
    /// New name.
    name: String,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let rename = Command::RenameTake { take: resolved.take.id, name: self.name };
        context.change_and_report(resolved.thread.summary.id, rename, self.target.expect)
    }
}
