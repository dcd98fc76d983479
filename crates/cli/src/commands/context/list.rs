//! `retake context list`

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::take::{FileItem, FileList};
use serde::Serialize;

use super::Which;
use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// List the context files of a take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context
  retake context list --list screenshots --json")]
pub(crate) struct Arguments {
    /// List to show.
    #[arg(short, long, value_enum, default_value_t, value_name = "LIST")]
    list: Which,
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
        let meant = context.meant(&context.timeline()?.look()?, &(&self.target).into())?;
        let list = self.list.list();
        let files = meant.take.file_list(list).to_vec();
        let answer = Answer { thread: meant.thread.summary.id, take: meant.take.id, list, files };
        if answer.files.is_empty() {
            context.remark("The list is empty; `retake context add` adds files.")?;
        }
        context.answer(&answer, |out, _| {
            for file in &answer.files {
                writeln!(out, "{}", sanitize(&file.path, Lines::Fold))?;
            }
            Ok(())
        })
    }
}
