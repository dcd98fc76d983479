//! `retake take delete`

use clap::Args;
use retake_timeline::Command;

use super::NowOn;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::desk::FileFlags;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

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
        let looking = context.timeline()?.look()?;
        let thread = context.thread(&looking, self.target.thread.as_deref())?;
        let take = looking.find_take(&thread, &self.take)?.summary;
        drop(looking);
        let delete = Command::DeleteTake { take: take.id };
        let changed = context.change_takes(thread.summary.id, delete, self.target.expect, self.files)?;
        let Some(answer) = NowOn::of(changed) else { return Ok(()) };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            write!(out, "Deleted take {}", sanitize(&take.name, Lines::Fold))?;
            if thread.summary.active.id == take.id {
                write!(out, "; the active take is now {}", sanitize(&answer.take.name, Lines::Fold))?;
            }
            let undo = context.undo_command(&answer.done);
            writeln!(out, ". {muted}version {}; `{undo}` restores it{muted:#}", answer.done.version)?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}
