//! `retake snapshot`: the files of a thread at its moments.

mod list;
mod take;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

/// Commands on snapshots.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record the files as they are now.
    Take(take::Arguments),
    /// List the moments at which files are known, newest first.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Take(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
    }
}
