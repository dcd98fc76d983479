//! `retake role remove`

use clap::Args;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Remove roles. Existing entries keep them.
#[derive(Args)]
#[command(after_help = "Example:\n  retake role remove \"Vendor API\"")]
pub(crate) struct Arguments {
    /// Roles to remove.
    #[arg(required = true, value_name = "ROLE")]
    roles: Vec<String>,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { roles, target } = self;
        super::change(context, target, |resolved| {
            resolved.roles.iter().filter(|role| !roles.contains(role)).cloned().collect()
        })
    }
}
