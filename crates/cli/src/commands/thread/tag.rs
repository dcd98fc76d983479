//! `retake thread tag`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Add or remove tags of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread tag bug login
  retake thread tag --remove bug")]
pub(crate) struct Arguments {
    /// Tags to add.
    #[arg(required_unless_present = "remove")]
    tags: Vec<String>,
    /// Tags to remove; can be repeated.
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?;
        let tag = Command::Tag { add: self.tags, remove: self.remove };
        context.change_and_report(thread.summary.id, tag, self.target.expect)
    }
}
