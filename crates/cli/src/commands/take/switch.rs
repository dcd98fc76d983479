//! `retake take switch`

use clap::Args;
use retake_timeline::Command;

use super::TakeAnswer;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Switch to another take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take switch main                 with its files
  retake take switch main --conversation  without changing files
  retake take switch main_take_2 -t \"Fix the login\"")]
pub(crate) struct Arguments {
    /// Take: name or id prefix.
    pub(in crate::commands) take: String,
    #[command(flatten)]
    pub(in crate::commands) files: FileFlags,
    #[command(flatten)]
    pub(in crate::commands) target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let take = reader.find().take(&thread, &self.take)?.summary.id;
        drop(reader);
        let switch = Command::Switch { take };
        let changed = context.change_takes(thread.summary.id, switch, self.target.expect, self.files)?;
        let Some(answer) = TakeAnswer::of(changed) else { return Ok(()) };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let name = sanitize(&answer.take.name, LineBreaks::Fold);
            let entries = counted(answer.take.entries, "entry", "entries");
            if !answer.done.changed() {
                return writeln!(out, "{name} is already the active take, {entries}.");
            }
            writeln!(
                out,
                "Switched to {name}, {entries}. {muted}version {}; `{}` undoes it{muted:#}",
                answer.done.version,
                context.undo_command(&answer.done)
            )?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}
