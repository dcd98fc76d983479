//! `retake context remove`

use crate::arguments::choice;
use retake_model::take::FileList;
use std::path::PathBuf;

use clap::Args;
use retake_timeline::Command;
use retake_workspace::folder::path_to_text;

use super::parts::{PartChange, PartFlags};
use super::stored_paths;
use crate::arguments::Target;
use crate::commands::retry_on_conflict::change_with_retry;
use crate::context::Context;
use crate::failure::Failure;

/// Remove files from the list, or outputs and pictures of entries from the context. Nothing is deleted.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context remove src/login.rs
  retake context remove --list screenshots error.png
  retake context remove 5 --output        models get a note instead of the output in entry 5
  retake context remove 1 --images

An output or picture stays in its entry; `retake context add` adds it to the context again, and so does an undo.")]
pub(crate) struct Arguments {
    /// Files to remove (those that are not in the list are skipped), or with --output or --images, entries.
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
            return self.parts.change(context, &self.target, &self.paths, PartChange::Remove);
        }
        let (_, kept) = stored_paths(context, &self.target, &self.paths)?;
        let typed = self.paths.iter().map(|path| path_to_text(path));
        let paths: Vec<(String, String)> = kept.into_iter().zip(typed).collect();
        let list = self.list;
        let done = change_with_retry(context, &self.target, |resolved| {
            let mut items = resolved.take.file_list(list).to_vec();
            for (kept, typed) in &paths {
                // An imported list may contain the path exactly as typed.
                let there = items.iter().any(|item| item.path == *kept);
                let path = if there { kept } else { typed };
                items.retain(|item| item.path != *path);
            }
            Ok(Command::SetFiles { take: resolved.take.id, list, items })
        })?;
        context.report_done(&done)
    }
}
