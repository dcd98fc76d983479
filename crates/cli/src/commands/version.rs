//! `retake version`

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

/// Print the version.
#[derive(Args)]
#[command(after_help = "\
Example:
  retake version --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    version: &'static str,
}

pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let answer = Answer { version: env!("RETAKE_VERSION") };
    context.answer(&answer, |out, _| writeln!(out, "retake {}", answer.version))
}
