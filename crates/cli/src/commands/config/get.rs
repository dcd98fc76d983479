//! `retake config get`

use clap::Args;

use super::File;
use crate::config::key;
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
        let setting = File::read()?.setting(key(&self.key)?)?;
        if setting.value.is_none() && !context.general.json {
            let message = format!("{} is not set and has no default", setting.key);
            return Err(Failure::new(Code::NotFound, message));
        }
        context.answer(&setting, |out, _| writeln!(out, "{}", setting.shown()))
    }
}
