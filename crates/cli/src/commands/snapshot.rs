//! `retake snapshot`: the recorded files of a thread.

mod list;
mod take;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record the current files.
    Take(take::Arguments),
    /// List snapshots, newest first.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Take(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
    }
}
