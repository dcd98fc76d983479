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
  retake role add --first Reviewer        the role of new entries from now on")]
pub(crate) struct Arguments {
    /// The roles: any text of one line.
    #[arg(required = true, value_name = "ROLE")]
    roles: Vec<String>,
    /// Put them before the others; those that are there already move.
    #[arg(long)]
    first: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { roles, first, target } = self;
        // A role that is named twice counts once, where it stands first.
        super::change(context, target, |meant| {
            let (before, after) = if first { (&roles, &meant.roles) } else { (&meant.roles, &roles) };
            before.iter().chain(after).cloned().collect()
        })
    }
}
