//! `retake thread pin` and `unpin`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;

/// Keep a thread on top of lists.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread pin \"Fix the login\"")]
pub(crate) struct PinArguments {
    /// The thread: a title, or the beginning of an id [default: the current one].
    thread: Option<String>,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// No longer keep a thread on top of lists.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread unpin \"Fix the login\"")]
pub(crate) struct UnpinArguments {
    /// The thread: a title, or the beginning of an id [default: the current one].
    thread: Option<String>,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl PinArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(self.thread.as_deref(), true, self.expect, context)
    }
}

impl UnpinArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(self.thread.as_deref(), false, self.expect, context)
    }
}

fn set(thread: Option<&str>, pinned: bool, expect: Option<u64>, context: &Context) -> Result<(), Failure> {
    let thread = context.thread(&context.timeline()?.look()?, thread)?;
    context.change_and_report(thread.summary.id, Command::Pin { pinned }, expect)
}
