//! `retake compress`

use clap::Args;
use retake_agent::{CompressOptions, KeepRecent};

use crate::agent::{AgentFlags, InterruptGuard};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Replace old entries with a summary by the model. One undo restores them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake compress                         all but about the last 10 entries
  retake compress --keep 0                everything
  retake undo                             restores the originals

A turn does this automatically when the conversation exceeds the model's context window.")]
pub(crate) struct Arguments {
    /// About how many of the last entries to keep; the cut is always before one of your messages.
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: u64,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let settings = reader.settings(resolved.thread.summary.id).effective()?;
        drop(reader);
        let runtime =
            context.runtime((resolved.thread.summary.id, resolved.take.id), &settings, &self.agent)?;
        let interruptible = InterruptGuard::new()?;
        let compressed = runtime.compress(
            resolved.thread.summary.id,
            resolved.take.id,
            KeepRecent::Entries(self.keep),
            CompressOptions { expected: self.target.expect, ..CompressOptions::default() },
            interruptible.cancel(),
        )?;
        context.report(&compressed, |out, styles| {
            let muted = styles.muted;
            let what = counted(compressed.removed, "entry", "entries");
            let (thread, take) = (resolved.thread.summary.id, Some(resolved.take.id));
            let undo = context.undo_command_of(thread, take, compressed.version);
            writeln!(
                out,
                "A summary replaces {what}. {muted}version {}; `{undo}` restores them{muted:#}\n",
                compressed.version
            )?;
            writeln!(out, "{}", sanitize(&compressed.summary, LineBreaks::Keep))
        })
    }
}
