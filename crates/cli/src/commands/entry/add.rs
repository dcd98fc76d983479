//! `retake entry add`

use clap::Args;
use retake_timeline::{Command, Spot};

use super::Content;
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Add an entry behind the last one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry add \"Why does the login fail?\"
  retake entry add --role AI --file answer.md
  git diff | retake entry add --role Context
  retake entry add \"It looks like this:\" --image screenshot.png
  echo '{\"content\": \"hi\", \"ticket\": 7}' | retake entry add --fields")]
pub(crate) struct Arguments {
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let meant = context.meant(&timeline.look()?, &self.target)?;
        let Some(entry) = self.content.read(&meant.state.roles, timeline.now())? else {
            return context.remark("Nothing was written, so nothing was added.");
        };
        let add = Command::AddEntries { take: meant.take.id, at: Spot::End, entries: vec![entry] };
        context.change_and_report(meant.thread.summary.id, add, self.target.expect)
    }
}
