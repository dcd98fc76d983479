//! `retake completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

/// Print shell completions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake completions bash > ~/.local/share/bash-completion/completions/retake
  retake completions zsh > ~/.zfunc/_retake
  retake completions fish > ~/.config/fish/completions/retake.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

#[derive(Serialize)]
struct Answer {
    shell: String,
    script: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut crate::arguments::Arguments::command(),
            "retake",
            &mut script,
        );
        let script = String::from_utf8_lossy(&script).into_owned();
        let answer = Answer { shell: self.shell.to_string(), script };
        context.answer_verbatim(&answer, &answer.script)
    }
}
