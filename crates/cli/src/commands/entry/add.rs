//! `retake entry add`

use clap::Args;
use retake_timeline::{Command, InsertPosition};

use super::{ComposedEntry, Content};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Add an entry at the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry add \"Why does the login fail?\"
  retake entry add --role AI --file answer.md
  git diff | retake entry add --role Context
  retake entry add \"It looks like this:\" --attach screenshot.png
  retake entry add --draft                  send the draft, for example after a fork
  echo '{\"content\": \"hi\", \"ticket\": 7}' | retake entry add --fields")]
pub(crate) struct Arguments {
    #[command(flatten)]
    content: Content,
    /// Send the take's draft: it becomes the entry, and the draft is empty afterwards. One undo reverts both.
    #[arg(long, conflicts_with_all = ["text", "file", "attach", "fields"])]
    draft: bool,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let resolved = context.resolve(&timeline.read()?, &self.target)?;
        let thread = resolved.thread.summary.id;
        if self.draft {
            let send = Command::SendDraft { take: resolved.take.id, role: self.content.role };
            return context.change_and_report(thread, send, self.target.expect);
        }
        let Some(ComposedEntry { entry, by_hand }) = self.content.read(&resolved.roles, timeline.now())?
        else {
            return context.note("Empty text; nothing was added.");
        };
        let add =
            Command::AddEntries { take: resolved.take.id, at: InsertPosition::End, entries: vec![entry] };
        let done = context.change_preserving(thread, add, self.target.expect, by_hand.as_deref())?;
        context.report_done(&done)
    }
}
