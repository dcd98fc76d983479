//! `retake project forget`

use clap::Args;

use super::find::find;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{Lines, sanitize};

/// Forget which folder a project is in. Files stay as they are, and threads are kept.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project forget                this folder is no project any more
  retake project forget 7f3kq2p9

Threads of the project are kept without a folder, and so are its prompts, roles and context presets; `retake project adopt ID`
gives them one. A project without any of these is forgotten altogether.")]
pub(crate) struct Arguments {
    /// The project: its id, or the beginning of it [default: that of this folder].
    project: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let id = match &self.project {
            Some(text) => find(&timeline.look()?, text)?.id,
            None => context.project()?.id,
        };
        if timeline.look()?.queries().project(id)?.is_none() {
            let message = "this folder is no project; `retake project list` shows those there are";
            return Err(Failure::new(Code::NotFound, message));
        }
        let forgotten = timeline.forget_project(id)?;
        context.report(&forgotten, |out, styles| {
            let (path, command) = (sanitize(&forgotten.path, Lines::Fold), styles.command);
            writeln!(out, "{path} is no project any more; its files are as they were.")?;
            if !forgotten.kept {
                return Ok(());
            }
            let kept = match forgotten.threads {
                0 => "Its prompts, roles and context presets are".to_owned(),
                threads => counted(threads, "thread is", "threads are"),
            };
            let id = forgotten.id.short();
            writeln!(
                out,
                "{kept} kept without a folder; {command}retake project adopt {id}{command:#} gives them one."
            )
        })
    }
}
