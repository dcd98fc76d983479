//! `retake settings`: prompts, sampling, model.

mod get;
mod list;
mod set;
mod unset;

use clap::{Args, Subcommand};
use retake_model::settings::{BadSetting, NAMES};

use super::defaulted::Defaulted;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Settings of a thread: prompts, sampling, model.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake settings
  retake settings set temperature 0.7
  retake settings set project_system_prompt --file prompt.md
  retake settings unset temperature

Settings: project_system_prompt, global_system_prompt, base_system_prompt, use_default_base_prompt,
temperature, top_p, max_tokens, auto_add_history, provider, model, effort. They are part of the thread and of
its history; how Retake itself behaves is set with `retake config`.

The global prompt holds in all projects, and the project prompt in all threads of the project, whichever thread sets
it; an undo there takes it back. With auto_add_history, an entry before each prompt names the files that were changed
since the last turn, by hand or by a command.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Defaulted<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List all settings (this is the default).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show the value of one setting.
    Get(get::Arguments),
    /// Set one setting, or several at once.
    Set(set::Arguments),
    /// Bring settings back to their defaults.
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

/// The name, if it is one of a setting.
fn known(name: &str) -> Result<&'static str, Failure> {
    let found = NAMES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| Failure::new(Code::NotFound, BadSetting::Unknown(name.chars().take(40).collect())))
}
