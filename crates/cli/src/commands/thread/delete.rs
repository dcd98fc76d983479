//! `retake thread delete` and `restore`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Delete a thread: it disappears from lists, and its files stay. Nothing is destroyed, so that it can be restored. The last
/// thread of a project cannot be deleted.
///
/// If it was the current thread, the most recently changed of the others becomes current.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread delete \"Fix the login\"
  retake thread list --deleted
  retake thread restore \"Fix the login\"")]
pub(crate) struct DeleteArguments {
    /// Thread: title or id prefix [default: the current thread].
    thread: Option<String>,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// Restore a deleted thread.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread restore \"Fix the login\"")]
pub(crate) struct RestoreArguments {
    /// Thread: title or id prefix.
    thread: String,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl DeleteArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.thread.as_deref())?;
        let was_current = context.project()?.current == Some(thread.summary.id);
        let done = context.change(thread.summary.id, Command::Delete, self.expect)?;
        // The deletion succeeded, even if the new current thread cannot be read.
        let current = was_current.then(|| context.current_title()).flatten();
        context.report(&done, |out, styles| {
            let (muted, id) = (styles.muted, thread.summary.id.short());
            let title = sanitize(&thread.summary.title, LineBreaks::Fold);
            if !done.changed() {
                return writeln!(out, "{title} is already deleted.");
            }
            writeln!(
                out,
                "Deleted {title}. {muted}`retake undo` or `retake thread restore {id}` restores it; only `retake purge` destroys threads{muted:#}"
            )?;
            match &current {
                Some(next) => writeln!(out, "The current thread is now {}.", sanitize(next, LineBreaks::Fold)),
                None => Ok(()),
            }
        })
    }
}

impl RestoreArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, Some(&self.thread))?;
        context.change_and_report(thread.summary.id, Command::Restore, self.expect)?;
        context.note_same_titles(thread.summary.id);
        Ok(())
    }
}
