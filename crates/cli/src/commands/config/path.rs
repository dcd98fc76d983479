//! `retake config path`

use clap::Args;
use serde::Serialize;

use super::File;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Print the path of the configuration file.
#[derive(Args)]
#[command(after_help = "Example:\n  $EDITOR \"$(retake config path)\"")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    path: String,
    exists: bool,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, exists: file.text.is_some() };
        context.answer(&answer, |out, _| writeln!(out, "{}", sanitize(&answer.path, LineBreaks::Fold)))
    }
}
