//! `retake take delete`

use clap::Args;
use retake_timeline::Command;

use super::TakeAnswer;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Delete a take. `retake undo` restores it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take delete main_take_2
  retake undo                             restores it")]
pub(crate) struct Arguments {
    /// Take: name or id prefix.
    take: String,
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let take = reader.find().take(&thread, &self.take)?.summary;
        drop(reader);
        let delete = Command::DeleteTake { take: take.id };
        let changed = context.change_takes(thread.summary.id, delete, self.target.expect, self.files)?;
        let Some(answer) = TakeAnswer::of(changed) else { return Ok(()) };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            write!(out, "Deleted take {}", sanitize(&take.name, LineBreaks::Fold))?;
            if thread.summary.active.id == take.id {
                write!(out, "; the active take is now {}", sanitize(&answer.take.name, LineBreaks::Fold))?;
            }
            let undo = context.undo_command(&answer.done);
            writeln!(out, ". {muted}version {}; `{undo}` restores it{muted:#}", answer.done.version)?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}
