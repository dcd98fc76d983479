//! `retake config get`

use clap::Args;

use super::File;
use crate::config::key;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Print the value of one key.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake config get storage.folder
  retake config get output.entries --json")]
pub(crate) struct Arguments {
    /// The key, such as `storage.budget`.
    key: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let setting = File::read()?.setting(key(&self.key)?)?;
        if setting.value.is_none() && !context.general.json {
            let message = format!("{} is not set, and nothing stands in for it", setting.key);
            return Err(Failure::new(Code::NotFound, message));
        }
        context.answer(&setting, |out, _| writeln!(out, "{}", setting.shown()))
    }
}
