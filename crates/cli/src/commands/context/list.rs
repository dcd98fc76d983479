//! `retake context list`

use crate::arguments::choice;
use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::take::{FileItem, FileList};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// List the context files of a take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context
  retake context list --list screenshots --json")]
pub(crate) struct Arguments {
    /// List to show.
    #[arg(short, long, value_parser = choice::<FileList>(), default_value = "context", value_name = "LIST")]
    list: FileList,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    take: TakeId,
    list: FileList,
    files: Vec<FileItem>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &(&self.target).into())?;
        let list = self.list;
        let files = resolved.take.file_list(list).to_vec();
        let answer = Answer { thread: resolved.thread.summary.id, take: resolved.take.id, list, files };
        if answer.files.is_empty() {
            context.note_empty("No files in the context", "`retake context add FILE` adds one")?;
        }
        context.answer(&answer, |out, _| {
            for file in &answer.files {
                writeln!(out, "{}", sanitize(&file.path, LineBreaks::Fold))?;
            }
            Ok(())
        })
    }
}
