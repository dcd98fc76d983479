//! `retake entry delete`

use clap::Args;
use retake_model::id::EntryId;
use retake_timeline::{Command, FindError};

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Delete entries.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry delete 4
  retake entry delete 2 3 last")]
pub(crate) struct Arguments {
    /// Entries: numbers, `last` or id prefixes.
    #[arg(required = true)]
    entries: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let mut entries = Vec::new();
        for text in &self.entries {
            match reader.find().entry(&resolved.take, text) {
                Ok((_, entry)) => entries.push(entry),
                // A complete id that is not found was already deleted: nothing to do.
                Err(FindError::NoEntry(_)) if text.parse::<EntryId>().is_ok() => {}
                Err(error) => return Err(error.into()),
            }
        }
        drop(reader);
        let delete = Command::DeleteEntries { take: resolved.take.id, entries };
        let done = context.change(resolved.thread.summary.id, delete, self.target.expect)?;
        context.report_cache_cost(&done, resolved.take.id)
    }
}
