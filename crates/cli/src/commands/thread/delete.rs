//! `retake thread delete` and `restore`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;

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
}

/// Take a thread that was put away back into use.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread restore \"Fix the login\"")]
pub(crate) struct RestoreArguments {
    /// The thread: a title, or the beginning of an id.
    thread: String,
}

impl DeleteArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, self.thread.as_deref())?;
        let done = context.change(thread.summary.id, Command::Delete, None)?;
        context.report_done(&done)?;
        context.remark(&format!(
            "`retake thread restore {}` brings it back; only `retake purge` destroys.",
            thread.summary.id.short()
        ))
    }
}

impl RestoreArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, Some(&self.thread))?;
        context.change_and_report(thread.summary.id, Command::Restore, None)
    }
}
