//! `retake draft clear`

use clap::Args;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Empty the draft.
#[derive(Args)]
#[command(after_help = "Example:\n  retake draft clear")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let meant = context.meant(&context.timeline()?.look()?, &self.target)?;
        super::write(context, &meant, String::new(), self.target.expect, None)
    }
}
