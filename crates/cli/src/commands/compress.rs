//! `retake compress`

use clap::Args;
use retake_agent::{CompressError, Keep, Knowing};

use crate::agent::{AgentFlags, Interruptible};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{Lines, sanitize};

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
        let looking = context.timeline()?.look()?;
        let meant = context.meant(&looking, &self.target)?;
        let settings = looking.effective_settings(meant.thread.summary.id)?;
        drop(looking);
        let shop = context.workshop((meant.thread.summary.id, meant.take.id), &settings, &self.agent)?;
        let interruptible = Interruptible::new()?;
        let compressed = shop
            .compress(
                meant.thread.summary.id,
                meant.take.id,
                Keep::Entries(self.keep),
                Knowing { expected: self.target.expect, ..Knowing::default() },
                interruptible.cancel(),
            )
            .map_err(|error| match error {
                CompressError::Turn(error) => error.into(),
                error @ CompressError::Model(_) => Failure::new(Code::Failed, error),
            })?;
        context.report(&compressed, |out, styles| {
            let muted = styles.muted;
            let what = counted(compressed.removed, "entry", "entries");
            let (thread, take) = (meant.thread.summary.id, Some(meant.take.id));
            let undo = context.undo_command_of(thread, take, compressed.version);
            writeln!(
                out,
                "A summary replaces {what}. {muted}version {}; `{undo}` restores them{muted:#}\n",
                compressed.version
            )?;
            writeln!(out, "{}", sanitize(&compressed.summary, Lines::Keep))
        })
    }
}
