//! `retake sync`: exchange of threads with remotes.

mod background;
mod now;
mod report;
mod retry;
mod status;
mod watch;

use clap::{Args, Subcommand};

pub(crate) use background::start_in_background;
pub(crate) use report::reason as pause_reason;

use super::defaulted::WithDefault;
use crate::context::Context;
use crate::failure::Failure;

/// Exchange threads with remotes now: fetch, merge and send.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake sync                     with all remotes
  retake sync home                with one
  retake sync status
  retake sync watch               until Ctrl-C

Nothing of a private thread is sent. Files in your folder never change. With a remote that is not `--manual`, commands and \
`retake serve` synchronize by themselves, in the background.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, now::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// Exchange threads now (the default command).
    Now(now::Arguments),
    /// Show the state of each thread, and what waits.
    Status(status::Arguments),
    /// Try everything again that failed, without waiting.
    Retry(retry::Arguments),
    /// Exchange threads whenever something changes, until Ctrl-C.
    Watch(watch::Arguments),
    /// What a command starts after a change.
    #[command(hide = true)]
    Background(background::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::Now) {
            Command::Now(arguments) => arguments.run(context),
            Command::Status(arguments) => arguments.run(context),
            Command::Retry(arguments) => arguments.run(context),
            Command::Watch(arguments) => arguments.run(context),
            Command::Background(arguments) => arguments.run(context),
        }
    }
}
