//! `retake project`: the folders that Retake works in.

mod adopt;
mod find;
mod forget;
mod init;
mod link;
mod list;
mod root;
mod show;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

/// Show the project of this folder, create one, or adopt the threads of another.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project                     the project of this folder
  retake project list
  retake project init                make this folder a project
  retake project forget              this folder is no longer a project; its threads are kept
  retake project adopt 7f3kq2p9      use the threads of that project in this folder
  retake project root add lib ../lib  record the files of ../lib with this project")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the project of this folder (the default command).
    Show(show::Arguments),
    /// List all known projects.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Make this folder a project, even inside another one.
    Init(init::Arguments),
    /// Forget the folder of a project. Does not delete files or threads.
    Forget(forget::Arguments),
    /// Use the threads of another project in this folder.
    Adopt(adopt::Arguments),
    /// Say that this folder is a project of another machine, or show what identifies it.
    Link(link::Arguments),
    /// Manage additional folders of this project.
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
            Command::Link(arguments) => arguments.run(context),
            Command::Root(command) => command.run(context),
        }
    }
}
