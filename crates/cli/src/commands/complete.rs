//! `retake __complete`, which the scripts of `retake completions` call.

use std::io::Write;

use clap::Args;

use crate::completion::{complete, split};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::pager::ignore_closed_pipe;

/// Print the possible values of the last word, one a line, each with a tab and its description.
#[derive(Args)]
#[command(after_help = "Example:\n  retake __complete -- take switch \"\"")]
pub(crate) struct Arguments {
    /// The line up to the cursor, as it was typed. The values are quoted for a POSIX shell.
    #[arg(long, conflicts_with = "words")]
    line: Option<String>,
    /// The words after the name of the program; the last one is at the cursor.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let is_quoted = self.line.is_some();
        let mut words = match self.line {
            // A line with an open quote before its last word cannot be read.
            Some(line) => split(&line).map(|(_, words)| words[1..].to_vec()).unwrap_or_default(),
            None => self.words,
        };
        if words.is_empty() {
            words.push(String::new());
        }
        let mut out = Vec::new();
        for candidate in complete(&words, context.directory(), None) {
            let value = if is_quoted && !is_folder(&candidate.value) {
                shell_words::quote(&candidate.value).into_owned()
            } else {
                candidate.value
            };
            writeln!(out, "{value}\t{}", candidate.help)?;
        }
        Ok(ignore_closed_pipe(std::io::stdout().write_all(&out))?)
    }
}

/// Whether a value goes on with the name of a file.
fn is_folder(value: &str) -> bool {
    value.ends_with('/') && !value.contains(char::is_whitespace)
}
