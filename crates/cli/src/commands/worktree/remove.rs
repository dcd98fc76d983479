//! `retake worktree remove`

use clap::Args;
use retake_timeline::PlanRequest;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::MoveResult;

/// Record the last state of a worktree and detach it from its take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake worktree remove                              in the worktree
  retake worktree remove main_take_2                  from the project's folder
  retake worktree remove main_take_2 --delete-files   and delete the recorded files
  retake worktree remove main_take_2 --delete-files --dry-run

`retake take switch` then restores the take's last files in the project's folder.")]
pub(crate) struct Arguments {
    /// Take: name or id prefix [default: the take of this worktree].
    take: Option<String>,
    /// Delete the recorded files from the folder. Excluded files (ignored files, secrets) remain.
    #[arg(long)]
    delete_files: bool,
    /// Only show what would be recorded and deleted.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let folder = match &self.take {
            None => context.worktree()?.cloned(),
            Some(text) => {
                let thread = context.thread(&reader, self.target.thread.as_deref())?;
                let take = reader.find().take(&thread, text)?.summary.id;
                reader.worktrees().of(thread.summary.id, take)?
            }
        };
        let folder = folder.ok_or_else(|| {
            Failure::new(
                Code::NotFound,
                "this folder is not a worktree; `retake worktree list` lists the worktrees",
            )
        })?;
        drop(reader);
        let caller = context.caller(folder.thread, self.target.expect)?;
        let request =
            PlanRequest::CloseWorktree { folder: Box::new(folder.clone()), remove: self.delete_files };
        let closed = match context.change_worktree(folder.thread, request, caller, self.dry_run)? {
            MoveResult::Done(executed) => executed.into_closed()?,
            MoveResult::Previewed(preview) => return context.report_preview(preview),
        };
        let Some(closed) = closed else {
            let path = folder.path.display().to_string();
            let what = if folder.path.symlink_metadata().is_ok() {
                "is not the folder of the worktree any more and was not changed; the worktree was forgotten"
            } else {
                "no longer exists; the worktree was forgotten"
            };
            return context.report(&folder, |out, _| {
                let path = sanitize(&path, LineBreaks::Fold);
                writeln!(out, "{path} {what}. Its recorded files are kept.")
            });
        };
        context.report(&closed, |out, _| {
            if !closed.recorded.files.paths.is_empty() {
                writeln!(out, "Recorded the changes since the last snapshot:")?;
                write_report(out, context, &closed.recorded.files)?;
            }
            let path = closed.path.display().to_string();
            let what = if closed.removed { "its files were deleted" } else { "its files were kept" };
            writeln!(out, "{} is no longer a worktree; {what}.", sanitize(&path, LineBreaks::Fold))
        })
    }
}
