//! `retake project forget`

use clap::Args;

use super::find::find;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Forget the folder of a project. Does not delete files or threads.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project forget                this folder is no longer a project
  retake project forget 7f3kq2p9

The threads, prompts, roles and context presets of the project are kept without a folder; `retake project adopt ID` \
assigns them to one. A project that has none of these is deleted.")]
pub(crate) struct Arguments {
    /// Project: id or id prefix [default: the project of this folder].
    project: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let id = match &self.project {
            Some(text) => find(&timeline.read()?, text)?.id,
            None => context.project()?.id,
        };
        if timeline.read()?.queries().project(id)?.is_none() {
            let message = "this folder is not a project; `retake project list` lists all projects";
            return Err(Failure::new(Code::NotFound, message));
        }
        let forgotten = timeline.forget_project(id)?;
        context.report(&forgotten, |out, styles| {
            let (path, command) = (sanitize(&forgotten.path, LineBreaks::Fold), styles.command);
            writeln!(out, "{path} is no longer a project. Its files were not changed.")?;
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
                "{kept} kept without a folder; {command}retake project adopt {id}{command:#} assigns them to one."
            )
        })
    }
}
