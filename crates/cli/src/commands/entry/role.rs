//! `retake entry role`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Change the role of an entry.
#[derive(Args)]
#[command(after_help = "Example:\n  retake entry role 3 System")]
pub(crate) struct Arguments {
    /// Entry: number, `last` or id prefix.
    entry: String,
    /// New role: any text.
    role: String,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let (_, entry) = reader.find().entry(&resolved.take, &self.entry)?;
        drop(reader);
        let change = Command::ChangeRole { take: resolved.take.id, entry, role: self.role };
        let done = context.change(resolved.thread.summary.id, change, self.target.expect)?;
        context.report_cache_cost(&done, resolved.take.id)
    }
}
