//! `retake project init`

use clap::Args;

use super::show::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Make this folder a project of its own, whatever is above it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project init
  retake -C packages/app project init      commands in packages/app no longer mean the project above it

A folder that is a project already stays as it is. A home folder, `/` and system folders are refused, as are the store
and folders of takes. Nothing in the folder changes; it gets an extended attribute that names the project.")]
pub(crate) struct Arguments {}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let project = timeline.init_project(context.directory())?;
        context.tell_noticed(&project.noticed)?;
        let answer = Answer::new(&project, &timeline.look()?)?;
        context.report(&answer, |out, styles| {
            writeln!(out, "This folder is project {}.", project.id.short())?;
            answer.write(out, styles)
        })
    }
}
