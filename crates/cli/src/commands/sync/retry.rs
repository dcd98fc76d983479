//! `retake sync retry`

use clap::Args;

use super::now::exchange;
use crate::context::Context;
use crate::failure::Failure;

/// Try everything again that failed, without waiting.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake sync retry
  retake sync retry home")]
pub(crate) struct Arguments {
    /// Name of the remote [default: all].
    remote: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        exchange(context, self.remote.as_deref())
    }
}
