//! `retake models`

use clap::Args;
use retake_agent::provider::config::{Surroundings, choose, models, resolve};
use retake_agent::provider::known::{KNOWN, OFFLINE, known};
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
    default: Default,
    providers: Vec<Listed>,
}

#[derive(Serialize)]
struct Default {
    provider: String,
    model: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    /// Whether it can be asked.
    ready: bool,
    /// What is missing, if anything is.
    missing: Option<String>,
    models: Vec<String>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let config = &context.config;
        let around = Surroundings::of_process();
        let chosen = choose(None, config.agent.provider.as_deref(), &around).name().to_owned();
        let own = config.providers.keys().map(String::as_str).filter(|name| known(name).is_none());
        let names = KNOWN.iter().map(|known| known.name).chain(own).chain([OFFLINE]);
        let providers: Vec<Listed> = names
            .map(|name| {
                let models = models(name, &config.providers);
                let model = models.first().map_or("a-model", String::as_str);
                let missing = resolve(name, Some(model), &config.providers, &around).err();
                let missing = missing.map(|error| error.to_string());
                Listed { name: name.to_owned(), ready: missing.is_none(), missing, models }
            })
            .collect();
        let first = providers.iter().find(|listed| listed.name == chosen);
        let model = config.agent.model.clone().or_else(|| first?.models.first().cloned());
        let answer = Answer { default: Default { provider: chosen, model }, providers };
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
