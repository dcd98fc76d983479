//! `retake entry insert`

use clap::Args;
use retake_timeline::{Command, Spot};

use super::{Content, Read};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Insert an entry before another.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry insert 1 --role System \"Answer in one sentence.\"
  retake entry insert last \"Before the last one\"")]
pub(crate) struct Arguments {
    /// Entry to insert before: number, `last` or id prefix. In an empty take, 1.
    entry: String,
    #[command(flatten)]
    content: Content,
    /// Insert after that entry instead.
    #[arg(long)]
    after: bool,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let looking = timeline.look()?;
        let meant = context.meant(&looking, &self.target)?;
        // An empty take has no entry to insert before.
        let first = meant.take.entries.is_empty() && matches!(self.entry.as_str(), "1" | "last");
        let at = match first.then_some(Spot::End) {
            Some(end) => end,
            None => match looking.find_entry(&meant.take, &self.entry)?.1 {
                entry if self.after => Spot::After(entry),
                entry => Spot::Before(entry),
            },
        };
        drop(looking);
        let Some(Read { entry: content, by_hand }) = self.content.read(&meant.roles, timeline.now())? else {
            return context.remark("Empty text; nothing was inserted.");
        };
        let insert = Command::AddEntries { take: meant.take.id, at, entries: vec![content] };
        let thread = meant.thread.summary.id;
        let done = context.change_keeping(thread, insert, self.target.expect, by_hand.as_deref())?;
        context.report_reread(&done, meant.take.id)
    }
}
