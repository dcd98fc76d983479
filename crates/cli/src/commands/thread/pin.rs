//! `retake thread pin` and `unpin`

use clap::Args;
use retake_timeline::Command;

use crate::context::Context;
use crate::failure::Failure;

/// Pin a thread to the top of lists.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread pin \"Fix the login\"")]
pub(crate) struct PinArguments {
    /// Thread: title or id prefix [default: the current thread].
    thread: Option<String>,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// Unpin a thread.
#[derive(Args)]
#[command(after_help = "Example:\n  retake thread unpin \"Fix the login\"")]
pub(crate) struct UnpinArguments {
    /// Thread: title or id prefix [default: the current thread].
    thread: Option<String>,
    /// Fail unless the thread is at this version.
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
    let thread = context.thread(&context.timeline()?.read()?, thread)?;
    context.change_and_report(thread.summary.id, Command::Pin { pinned }, expect)
}
