//! `retake remote remove`

use clap::Args;
use retake_surface::forget_credentials;

use crate::context::Context;
use crate::failure::Failure;

use crate::ui::sanitize::{LineBreaks, sanitize};

/// Remove a remote from this machine. Its threads stay here and there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake remote remove home")]
pub(crate) struct Arguments {
    /// Name of the remote.
    name: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let removed = context.remotes()?.remove(&self.name)?;
        forget_credentials(&self.name)?;
        context.report(&removed, |out, _| {
            let name = sanitize(&removed.name, LineBreaks::Fold);
            writeln!(out, "Removed remote {name} from this machine. Nothing changed on it.")
        })
    }
}
