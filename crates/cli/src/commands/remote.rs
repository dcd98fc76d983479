//! `retake remote`: places to which threads are synchronized.

mod add;
mod list;
mod login;
mod purge;
mod remove;

use clap::{Args, Subcommand};

use super::defaulted::WithDefault;
use crate::context::Context;
use crate::failure::Failure;

/// Places to which threads are synchronized: a folder, a bucket or a hub.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake remote add home file:///media/disk/threads
  retake remote
  retake remote remove home

Private threads are never sent (`retake thread share --private yes`). docs/sync.md explains the rest.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List remotes (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Add a remote: a folder, a bucket or a hub.
    Add(add::Arguments),
    /// Remove a remote from this machine. Nothing changes on the remote.
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
    /// Store the credentials of a bucket or a hub.
    Login(login::Arguments),
    /// Destroy a thread on a remote, after confirmation. It stays on this machine.
    Purge(purge::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::List) {
            Command::List(arguments) => arguments.run(context),
            Command::Add(arguments) => arguments.run(context),
            Command::Remove(arguments) => arguments.run(context),
            Command::Login(arguments) => arguments.run(context),
            Command::Purge(arguments) => arguments.run(context),
        }
    }
}
