//! `retake thread delete` and `restore`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Delete a thread. Nothing is destroyed, and the last thread of a project is not deleted.
///
/// If it was the current one, the most lately changed of the others becomes current.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread delete \"Fix the login\"
  retake thread list --deleted
  retake thread restore \"Fix the login\"")]
pub(crate) struct DeleteArguments {
    /// The thread: a title, or the beginning of an id [default: the current one].
    thread: Option<String>,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// Take a thread that was put away back into use.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread restore \"Fix the login\"")]
pub(crate) struct RestoreArguments {
    /// The thread: a title, or the beginning of an id.
    thread: String,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl DeleteArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, self.thread.as_deref())?;
        let was_current = context.project()?.current == Some(thread.summary.id);
        let done = context.change(thread.summary.id, Command::Delete, self.expect)?;
        // The deletion is made: whether its successor can be named changes nothing about that.
        let current = was_current.then(|| context.title_of_current()).flatten();
        context.report(&done, |out, styles| {
            let (muted, id) = (styles.muted, thread.summary.id.short());
            let title = sanitize(&thread.summary.title, Lines::Fold);
            if !done.changed() {
                return writeln!(out, "{title} is deleted already.");
            }
            writeln!(
                out,
                "Deleted {title}. {muted}`retake undo` or `retake thread restore {id}` brings it back; only `retake purge` destroys{muted:#}"
            )?;
            match &current {
                Some(next) => writeln!(out, "The current thread is {} now.", sanitize(next, Lines::Fold)),
                None => Ok(()),
            }
        })
    }
}

impl RestoreArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, Some(&self.thread))?;
        context.change_and_report(thread.summary.id, Command::Restore, self.expect)?;
        context.remark_namesakes(thread.summary.id);
        Ok(())
    }
}
