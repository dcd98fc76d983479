//! `retake settings unset`

use clap::Args;
use retake_model::settings::Settings;
use retake_timeline::Command;

use super::known;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Reset settings to their defaults.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake settings unset temperature
  retake settings unset provider model")]
pub(crate) struct Arguments {
    /// Names of the settings.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let defaults = Settings::default();
        let mut values = Vec::new();
        for name in &self.names {
            let name = known(name)?;
            values.push((name.to_owned(), defaults.get(name).unwrap_or_default()));
        }
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?;
        context.change_and_report(thread.summary.id, Command::Set { values }, self.target.expect)
    }
}
