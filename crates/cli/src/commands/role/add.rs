//! `retake role add`

use clap::Args;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Add roles.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake role add Reviewer
  retake role add --first Reviewer        makes it the default role of new entries")]
pub(crate) struct Arguments {
    /// Roles to add: any text of one line.
    #[arg(required = true, value_name = "ROLE")]
    roles: Vec<String>,
    /// Put them first; existing ones move.
    #[arg(long)]
    first: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { roles, first, target } = self;
        // A role that is given twice counts once, at its first position.
        super::change(context, target, |resolved| {
            let (before, after) = if first { (&roles, &resolved.roles) } else { (&resolved.roles, &roles) };
            before.iter().chain(after).cloned().collect()
        })
    }
}
