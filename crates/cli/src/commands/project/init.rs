//! `retake project init`

use clap::Args;

use super::show::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Make this folder a project, even inside another one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project init
  retake -C packages/app project init      packages/app becomes a project separate from its parent

A folder that is already a project is not changed. Home folders, `/`, system folders, the store and worktrees are \
refused. No file changes; the folder gets an extended attribute that names the project.")]
pub(crate) struct Arguments {}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let project = timeline.init_project(context.directory())?;
        context.report_noticed(&project.folder_change)?;
        let answer = Answer::new(&project, &timeline.read()?)?;
        context.report(&answer, |out, styles| {
            writeln!(out, "This folder is project {}.", project.id.short())?;
            answer.write(out, styles)
        })
    }
}
