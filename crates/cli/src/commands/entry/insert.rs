//! `retake entry insert`

use clap::Args;
use retake_timeline::{Command, InsertPosition};

use super::{ComposedEntry, Content};
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
        let reader = timeline.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        // An empty take has no entry to insert before.
        let first = resolved.take.entries.is_empty() && matches!(self.entry.as_str(), "1" | "last");
        let at = match first.then_some(InsertPosition::End) {
            Some(end) => end,
            None => match reader.find().entry(&resolved.take, &self.entry)?.1 {
                entry if self.after => InsertPosition::After(entry),
                entry => InsertPosition::Before(entry),
            },
        };
        drop(reader);
        let Some(ComposedEntry { entry: content, by_hand }) =
            self.content.read(&resolved.roles, timeline.now())?
        else {
            return context.note("Empty text; nothing was inserted.");
        };
        let insert = Command::AddEntries { take: resolved.take.id, at, entries: vec![content] };
        let thread = resolved.thread.summary.id;
        let done = context.change_preserving(thread, insert, self.target.expect, by_hand.as_deref())?;
        context.report_cache_cost(&done, resolved.take.id)
    }
}
