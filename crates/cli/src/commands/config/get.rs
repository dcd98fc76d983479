//! `retake config get`

use clap::Args;

use super::File;
use super::set::Answer;
use crate::config::{get, is_free, key};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Print the value of a key.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake config get storage.folder
  retake config get output.entries --json")]
pub(crate) struct Arguments {
    /// Key, such as `storage.budget`.
    key: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if is_free(&self.key) {
            return self.get_free(context);
        }
        let setting = File::read()?.setting(key(&self.key)?)?;
        if setting.value.is_none() && !context.general.json {
            let message = format!("{} is not set and has no default", setting.key);
            return Err(Failure::new(Code::NotFound, message));
        }
        context.answer(&setting, |out, _| writeln!(out, "{}", setting.shown()))
    }

    /// Prints a key of a provider or a price. Whoever asks for a secret wants it printed.
    fn get_free(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        let value = get(file.text(), &self.key)?.as_ref().map(super::json);
        let Some(value) = value else {
            return Err(Failure::new(Code::NotFound, format!("{} is not set", self.key)));
        };
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, key: self.key, changed: false, value: Some(value) };
        context.answer(&answer, |out, _| {
            writeln!(out, "{}", answer.value.as_ref().map(super::show).unwrap_or_default())
        })
    }
}
