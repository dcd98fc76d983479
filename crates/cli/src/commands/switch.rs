//! `retake switch`

use clap::Args;
use retake_timeline::FindError;

use super::{take, thread};
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::working_copy::FileFlags;

/// Switch to a take of this thread, or to another thread. A name of both is the take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake switch main                      a take of this thread, with its files
  retake switch \"Fix the login\"           another thread
  retake switch \"Fix the login/main\"      a take of another thread")]
pub(crate) struct Arguments {
    /// Take (name or id prefix), thread (title or id prefix), or THREAD/TAKE.
    #[arg(value_name = "TAKE|THREAD")]
    name: String,
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { name, files, target } = self;
        if target.thread.is_some() || target.expect.is_some() || is_take(context, &name)? {
            return take::switch::Arguments { take: name, files, target }.run(context);
        }
        thread::switch::Arguments { thread: name }.run(context)
    }
}

/// Whether a name is that of a take of the current thread, if there is one.
fn is_take(context: &Context, name: &str) -> Result<bool, Failure> {
    let reader = context.timeline()?.read()?;
    let Ok(current) = context.thread(&reader, None) else { return Ok(false) };
    match reader.find().take(&current, name) {
        Ok(_) | Err(FindError::Several { .. }) => Ok(true),
        Err(FindError::Read(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}
