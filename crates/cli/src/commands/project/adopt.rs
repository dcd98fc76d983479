//! `retake project adopt`

use clap::Args;
use retake_workspace::folder::{path_from_text, path_to_text};

use super::find::find;
use super::show::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;

/// Use the threads of another project in this folder.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project list
  retake project adopt 7f3kq2p9")]
pub(crate) struct Arguments {
    /// Project: id or id prefix.
    project: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let folder = path_from_text(&context.project()?.path);
        let found = find(&timeline.read()?, &self.project)?;
        let adopted = timeline.adopt(&folder, found.id)?;
        let project = adopted.project;
        let answer = Answer::new(&project, &timeline.read()?)?;
        context.report(&answer, |out, styles| {
            let threads = counted(answer.threads(), "thread", "threads");
            writeln!(out, "This folder is now project {}, with {threads}.", project.id.short())?;
            answer.write(out, styles)
        })?;
        if let Some(displaced) = adopted.displaced {
            let (id, threads) = (displaced.id.short(), counted(displaced.threads, "thread", "threads"));
            let note = format!(
                "Project {id} with {threads} was here before; `retake project adopt {id}` brings it back."
            );
            context.note(&note)?;
        }
        let former = path_from_text(&found.path);
        if former != folder && former.is_dir() {
            let former = path_to_text(&former);
            context.note(&format!("Its former folder still exists, without threads: {former}"))?;
        }
        Ok(())
    }
}
