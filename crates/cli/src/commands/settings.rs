//! `retake settings`: prompts, sampling, model.

mod get;
mod list;
mod set;
mod unset;

use clap::{Args, Subcommand};
use retake_model::settings::{InvalidSettingError, NAMES};

use super::defaulted::WithDefault;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Show and change settings of a thread: prompts, sampling, model.
#[derive(Args)]
// Without this, clap reports two groups of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake settings
  retake settings set temperature 0.7
  retake settings set project_system_prompt --file prompt.md
  retake settings unset temperature

Settings: project_system_prompt, global_system_prompt, base_system_prompt, use_default_base_prompt, \
temperature, top_p, max_tokens, auto_add_history, provider, model, effort. They belong to the thread and its \
history; to configure Retake itself, use `retake config`.

The global prompt applies to all projects and the project prompt to all threads of a project, whichever thread sets \
them; an undo in that thread reverts them. With auto_add_history, an entry before each prompt lists the files that \
changed since the last turn.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List all settings (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Print the value of a setting.
    Get(get::Arguments),
    /// Set one or more settings.
    Set(set::Arguments),
    /// Reset settings to their defaults.
    Unset(unset::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::List) {
            Command::List(arguments) => arguments.run(context),
            Command::Get(arguments) => arguments.run(context),
            Command::Set(arguments) => arguments.run(context),
            Command::Unset(arguments) => arguments.run(context),
        }
    }
}

fn known(name: &str) -> Result<&'static str, Failure> {
    let found = NAMES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| {
        Failure::new(Code::NotFound, InvalidSettingError::Unknown(name.chars().take(40).collect()))
    })
}
