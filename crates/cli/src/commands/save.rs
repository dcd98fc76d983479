//! `retake save`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{Lines, sanitize};

/// Give the present moment a name to come back to.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake save \"before the rewrite\"
  retake jump \"before the rewrite\"

A name can be used again; `retake jump` then means the newest moment of that name.")]
pub(crate) struct Arguments {
    /// The name.
    name: String,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, self.target.thread.as_deref())?;
        let name = self.name.trim().to_owned();
        let save = Command::Save { name: self.name };
        let done = context.change(thread.summary.id, save, self.target.expect)?;
        context.report(&done, |out, styles| {
            let (muted, active) = (styles.muted, &done.summary.active);
            let take = sanitize(&active.name, Lines::Fold);
            let entries = counted(active.entries, "entry", "entries");
            let name = sanitize(&name, Lines::Fold);
            write!(out, "Saved version {} as “{name}”: on {take}, {entries}.", done.version)?;
            writeln!(out, " {muted}`retake jump \"{name}\"` comes back here{muted:#}")
        })
    }
}
