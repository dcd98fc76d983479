//! `retake models`

use clap::Args;
use retake_agent::provider::{Listed, listed};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Show which providers and models can be asked, and what is missing for the others.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake models
  retake config set agent.model anthropic/claude-sonnet-4-5
  retake settings set model gpt-5             for one thread

Any model's name can be given; those shown are the ones that Retake knows a price for, or that your configuration
names.")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    /// Who answers unless a thread says otherwise.
    default: String,
    providers: Vec<Listed>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let providers = listed(&context.config.providers, &crate::agent::environment_text);
        let default = context.default_model()?;
        let answer = Answer { default, providers };
        context.answer(&answer, |out, styles| {
            let (heading, muted, success) = (styles.heading, styles.muted, styles.success);
            writeln!(out, "Default: {}\n", sanitize(&answer.default, Lines::Fold))?;
            for provider in &answer.providers {
                let name = sanitize(&provider.name, Lines::Fold);
                let state = sanitize(&provider.state, Lines::Fold);
                let mark = if provider.ready { format!("{success}✓{success:#}") } else { " ".to_owned() };
                writeln!(out, "{mark} {heading}{name:<18}{heading:#} {muted}{state}{muted:#}")?;
                for model in &provider.models {
                    writeln!(out, "    {}", sanitize(model, Lines::Fold))?;
                }
            }
            Ok(())
        })
    }
}
