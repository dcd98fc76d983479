//! `retake thread delete` and `restore`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Put a thread away. Nothing is destroyed.
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
        let done = context.change(thread.summary.id, Command::Delete, self.expect)?;
        context.report(&done, |out, styles| {
            let (muted, id) = (styles.muted, thread.summary.id.short());
            let title = sanitize(&thread.summary.title, Lines::Fold);
            if !done.changed() {
                return writeln!(out, "{title} is put away already.");
            }
            writeln!(out, "Put away {title}. {muted}`retake thread restore {id}` brings it back; only `retake purge` destroys{muted:#}")
        })
    }
}

impl RestoreArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, Some(&self.thread))?;
        context.change_and_report(thread.summary.id, Command::Restore, self.expect)?;
        context.remark_namesakes(thread.summary.id)
    }
}
