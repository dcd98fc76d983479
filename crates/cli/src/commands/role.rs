//! `retake role`: the roles that a thread's entries are given.

mod add;
mod list;
mod remove;

use clap::{Args, Subcommand};
use retake_model::id::ThreadId;
use retake_timeline::Done;
use serde::Serialize;

use super::defaulted::Defaulted;
use crate::arguments::{Target, ThreadTarget};
use crate::context::{Context, Meant};
use crate::failure::Failure;

/// The roles that the entries of a project's threads are given. The first is that of a new entry where none is named.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake role
  retake role add Reviewer
  retake role remove \"Vendor API\"

The roles are those of all threads of the project. The list is what is offered. An entry may have any role: see `retake entry role`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Defaulted<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List the roles (this is the default).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Add roles.
    Add(add::Arguments),
    /// Remove roles. Entries keep theirs.
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::List) {
            Command::List(arguments) => arguments.run(context),
            Command::Add(arguments) => arguments.run(context),
            Command::Remove(arguments) => arguments.run(context),
        }
    }
}

#[derive(Serialize)]
struct Roles {
    thread: ThreadId,
    roles: Vec<String>,
}

/// Changes the list of roles, and says what came of it.
fn change(
    context: &Context,
    target: ThreadTarget,
    roles: impl Fn(&Meant) -> Vec<String>,
) -> Result<(), Failure> {
    let target = Target { thread: target.thread, take: None, expect: target.expect };
    let done: Done = super::seen::change_seen(context, &target, |meant| {
        Ok(retake_timeline::Command::SetRoles { roles: roles(meant) })
    })?;
    context.report_done(&done)
}
