//! `retake worktree add`

use std::path::PathBuf;

use clap::Args;
use retake_timeline::PlanRequest;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::MoveResult;

/// Check out a take in its own folder, to work on several takes at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake worktree add main_take_2                      next to the project's folder
  retake worktree add main_take_2 ../second-try
  retake worktree add main_take_2 --dry-run            show the folder and the number of files
  cd ../second-try && retake undo                      commands there apply to that take
  retake worktree remove main_take_2 --delete-files    record its last state, and delete its files

Excluded files (ignored files, secrets) are not copied. The project's folder is not changed.")]
pub(crate) struct Arguments {
    /// Take: name or id prefix.
    take: String,
    /// Folder [default: next to the project's, with the take's name appended].
    folder: Option<PathBuf>,
    /// Only show what would be created.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let take = reader.find().take(&thread, &self.take)?.summary;
        let folder = match &self.folder {
            Some(folder) => context.directory().join(folder),
            None => reader.worktrees().new_folder(thread.home, &take.name)?.ok_or_else(|| {
                Failure::new(Code::Usage, "the project's folder has no parent; name a folder after the take")
            })?,
        };
        drop(reader);
        let thread = thread.summary.id;
        let caller = context.caller(thread, self.target.expect)?;
        let request = PlanRequest::OpenWorktree { take: take.id, folder };
        let opened = match context.change_worktree(thread, request, caller, self.dry_run)? {
            MoveResult::Done(executed) => executed.into_opened()?,
            MoveResult::Previewed(preview) => return context.report_preview(preview),
        };
        context.report(&opened, |out, styles| {
            let (command, name) = (styles.command, sanitize(&take.name, LineBreaks::Fold));
            let path = opened.path.display().to_string();
            let path = sanitize(&path, LineBreaks::Fold);
            let files = counted(opened.files, "file", "files");
            writeln!(out, "Checked out take {name} in {path}: {files}.")?;
            writeln!(
                out,
                "Commands there apply to this take; {command}retake worktree remove{command:#} detaches it."
            )
        })
    }
}
