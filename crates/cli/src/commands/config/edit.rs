//! `retake config edit`

use clap::Args;

use super::File;
use super::set::Answer;
use crate::config::checked;
use crate::context::Context;
use crate::failure::{Code, Failure, preserve};
use crate::ui::command::environment;
use crate::ui::editor::{EditOutcome, edit};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Edit the file in your editor. It is replaced only if the new text is a valid configuration.
#[derive(Args)]
#[command(after_help = "\
Example:
  retake config edit

The editor has a copy. If the new text is not valid, or the file was changed meanwhile, nothing is written, and your text is \
saved to another file.")]
pub(crate) struct Arguments {}

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let file = File::read()?;
    let edited = match edit(file.text(), &environment).map_err(|error| Failure::new(Code::Failed, error))? {
        EditOutcome::Changed(text) => Some(text),
        EditOutcome::Unchanged => None,
    };
    if let Some(text) = &edited {
        replace(&file, text).map_err(|failure| preserve(failure, Some(text)))?;
    }
    let path = file.path.to_string_lossy().into_owned();
    let answer = Answer { path, key: String::new(), changed: edited.is_some(), value: None };
    context.report(&answer, |out, styles| {
        let muted = styles.muted;
        let what =
            if answer.changed { "Saved the configuration." } else { "The configuration is unchanged." };
        writeln!(out, "{what} {muted}{}{muted:#}", sanitize(&answer.path, LineBreaks::Fold))
    })
}

fn replace(file: &File, text: &str) -> Result<(), Failure> {
    let text = checked(text.to_owned(), &file.path)?;
    if File::read()?.text != file.text {
        let message = "the configuration file was changed while the editor was open; nothing was written";
        return Err(Failure::new(Code::Refused, message));
    }
    file.write(&text)
}
