//! `retake project`: the folder, and what Retake knows it as.

mod adopt;
mod find;
mod forget;
mod init;
mod list;
mod root;
mod show;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

/// Show which project this folder is, make it one, and take over the threads of another.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project                     what this folder is known as
  retake project list
  retake project init                this folder is a project of its own
  retake project forget              this folder is no project any more; its threads are kept
  retake project adopt 7f3kq2p9      its threads appear in this folder
  retake project root add lib ../lib the files of ../lib move together with those of this folder")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// Commands on projects.
#[derive(Subcommand)]
enum Command {
    /// Show which project this folder is (the default).
    Show(show::Arguments),
    /// List all projects that Retake has seen.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Make this folder a project of its own, whatever is above it.
    Init(init::Arguments),
    /// Forget which folder a project is in. Files stay as they are, and threads are kept.
    Forget(forget::Arguments),
    /// Say that this folder is a project that is known from elsewhere.
    Adopt(adopt::Arguments),
    /// Name further folders whose files belong to this project.
    #[command(subcommand)]
    Root(root::Command),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command.unwrap_or(Command::Show(show::Arguments {})) {
            Command::Show(arguments) => arguments.run(context),
            Command::List(arguments) => arguments.run(context),
            Command::Init(arguments) => arguments.run(context),
            Command::Forget(arguments) => arguments.run(context),
            Command::Adopt(arguments) => arguments.run(context),
            Command::Root(command) => command.run(context),
        }
    }
}
