//! `retake worktree`: takes that are checked out in their own folders.

mod add;
pub(super) mod list;
mod remove;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check out a take in its own folder, to work on several takes at once.
    Add(add::Arguments),
    /// Record the last state of a worktree and detach it from its take.
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
    /// List the worktrees of a thread.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Add(arguments) => arguments.run(context),
        Command::Remove(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
    }
}
