//! Command groups with a default command: `retake role` runs `retake role list`.

use clap::{Args, Subcommand};

/// A command of the group, or the arguments of the default command.
#[derive(Args)]
// Without this, clap reports two groups of the same name.
#[group(skip)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WithDefault<Command: Subcommand, Usual: Args> {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    usual: Usual,
}

impl<Command: Subcommand, Usual: Args> WithDefault<Command, Usual> {
    pub(crate) fn or(self, usual: impl FnOnce(Usual) -> Command) -> Command {
        self.command.unwrap_or_else(|| usual(self.usual))
    }
}
