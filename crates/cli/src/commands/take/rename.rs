//! `retake take rename`

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Rename a take.
#[derive(Args)]
#[command(
    override_usage = "retake take rename [OPTIONS] [OLD] <NEW>",
    after_help = "\
Examples:
  retake take rename main_take_2 shorter
  retake take rename shorter              the active take"
)]
pub(crate) struct Arguments {
    /// The take (name or id prefix) and its new name; without the take, the active one is renamed.
    #[arg(required = true, num_args = 1..=2, value_names = ["OLD", "NEW"])]
    names: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(mut self, context: &Context) -> Result<(), Failure> {
        let name = self.names.pop().unwrap_or_default();
        if let Some(old) = self.names.pop()
            && self.target.take.replace(old).is_some()
        {
            let message = "the take is named twice; use OLD NEW or --take, not both";
            return Err(Failure::new(Code::Usage, message));
        }
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let rename = Command::RenameTake { take: resolved.take.id, name };
        context.change_and_report(resolved.thread.summary.id, rename, self.target.expect)
    }
}
