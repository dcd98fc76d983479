//! `retake models`

use clap::Args;
use retake_agent::provider::config::Surroundings;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// List providers and models, and which are ready to use.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake models
  retake config set agent.model anthropic/claude-sonnet-4-5
  retake settings set model gpt-5             for one thread

Any model name can be used; the list shows models with a known price, and those in your configuration.")]
pub(crate) struct Arguments {}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let answer = context.setup().models(&Surroundings::of_process());
        context.answer(&answer, |out, styles| {
            let (heading, muted, success) = (styles.heading, styles.muted, styles.success);
            for listed in &answer.providers {
                let name = sanitize(&listed.name, Lines::Fold);
                let mark = if listed.ready { format!("{success}✓{success:#}") } else { " ".to_owned() };
                let default = if listed.name == answer.default.provider { "the default" } else { "" };
                let said = listed.missing.as_deref().unwrap_or(default);
                let said = sanitize(said, Lines::Fold);
                writeln!(out, "{mark} {heading}{name:<18}{heading:#} {muted}{said}{muted:#}")?;
                for model in &listed.models {
                    writeln!(out, "    {}", sanitize(model, Lines::Fold))?;
                }
            }
            Ok(())
        })
    }
}
