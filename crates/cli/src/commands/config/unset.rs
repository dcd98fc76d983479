//! `retake config unset`

use clap::Args;

use super::File;
use super::set::Answer;
use crate::config::{is_free, key, unset};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Remove a key from the file, restoring its default. Unknown keys can be removed too.
#[derive(Args)]
#[command(after_help = "Example:\n  retake config unset storage.budget")]
pub(crate) struct Arguments {
    /// Key, such as `storage.budget`.
    key: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        let text = unset(file.text(), &self.key)?;
        match &text {
            Some(text) => file.write(text)?,
            None if is_free(&self.key) => {}
            None => {
                key(&self.key)?;
            }
        }
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, key: self.key, changed: text.is_some(), value: None };
        context.report(&answer, |out, _| {
            let key = sanitize(&answer.key, LineBreaks::Fold);
            let what = if answer.changed { "is no longer set" } else { "was not set" };
            writeln!(out, "{key} {what}.")
        })
    }
}
