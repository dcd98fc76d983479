//! `retake context add`

use crate::arguments::choice;
use retake_model::take::FileList;
use std::path::PathBuf;

use clap::Args;
use retake_model::take::FileItem;
use retake_timeline::Command;
use retake_workspace::folder::path_from_text;

use super::parts::{PartChange, PartFlags};
use super::stored_paths;
use crate::arguments::Target;
use crate::commands::retry_on_conflict::change_with_retry;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Add files to the context of a take, or add removed outputs and pictures of entries again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context add src/login.rs tests/login.rs
  retake context add --list screenshots error.png
  retake context add 5 --output           after `retake context remove 5 --output`")]
pub(crate) struct Arguments {
    /// Files to add (those already in the list keep their position), or with --output or --images, entries.
    #[arg(required = true, value_name = "PATH|ENTRY")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    parts: PartFlags,
    /// List to change.
    #[arg(short, long, value_parser = choice::<FileList>(), default_value = "context", value_name = "LIST")]
    list: FileList,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.parts.are_set() {
            return self.parts.change(context, &self.target, &self.paths, PartChange::Add);
        }
        let (root, paths) = stored_paths(context, &self.target, &self.paths)?;
        let list = self.list;
        let done = change_with_retry(context, &self.target, |resolved| {
            let mut items = resolved.take.file_list(list).to_vec();
            for path in &paths {
                if !items.iter().any(|item| item.path == *path) {
                    items.push(FileItem::new(path));
                }
            }
            Ok(Command::SetFiles { take: resolved.take.id, list, items })
        })?;
        context.report_done(&done)?;
        for path in paths.iter().filter(|path| !root.join(path_from_text(path)).exists()) {
            context.note(&format!("{} does not exist yet.", sanitize(path, LineBreaks::Fold)))?;
        }
        Ok(())
    }
}
