//! `retake role`: the roles offered for new entries.

mod add;
mod list;
mod remove;

use clap::{Args, Subcommand};
use retake_model::id::ThreadId;
use retake_timeline::ChangeOutcome;
use serde::Serialize;

use super::defaulted::WithDefault;
use crate::arguments::{Target, ThreadTarget};
use crate::context::{Context, ResolvedTarget};
use crate::failure::Failure;

/// Manage the roles offered for new entries. The first one is the default.
#[derive(Args)]
// Without this, clap reports two groups of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake role
  retake role add Reviewer
  retake role remove \"Vendor API\"

All threads of a project share the list. An entry can have any role: see `retake entry role`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List the roles (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Add roles.
    Add(add::Arguments),
    /// Remove roles. Existing entries keep them.
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

/// Changes the list of roles and reports the result.
fn change(
    context: &Context,
    target: ThreadTarget,
    roles: impl Fn(&ResolvedTarget) -> Vec<String>,
) -> Result<(), Failure> {
    let target = Target { thread: target.thread, take: None, expect: target.expect };
    let done: ChangeOutcome = super::retry_on_conflict::change_with_retry(context, &target, |resolved| {
        Ok(retake_timeline::Command::SetRoles { roles: roles(resolved) })
    })?;
    context.report_done(&done)
}
