//! `retake project adopt`

use clap::Args;
use retake_workspace::folder::{path_from_text, path_to_text};

use super::find::find;
use super::show::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;

/// Say that this folder is a project that is known from elsewhere: its threads appear here.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project list
  retake project adopt 7f3kq2p9")]
pub(crate) struct Arguments {
    /// The project: its id, or the beginning of it.
    project: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let folder = path_from_text(&context.project()?.path);
        let found = find(&timeline.look()?, &self.project)?;
        let project = timeline.adopt(&folder, found.id)?;
        let answer = Answer::new(&project, &timeline.look()?)?;
        context.report(&answer, |out, styles| {
            let threads = counted(answer.threads(), "thread", "threads");
            writeln!(out, "This folder is project {} now, with {threads}.", project.id.short())?;
            answer.write(out, styles)
        })?;
        let former = path_from_text(&found.path);
        if former != folder && former.is_dir() {
            let former = path_to_text(&former);
            context.remark(&format!("Its former folder still stands, without threads: {former}"))?;
        }
        Ok(())
    }
}
