//! `retake take close`

use clap::Args;
use retake_timeline::PlanRequest;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::desk::Carried;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{Lines, sanitize};

/// End a take's own folder, recording its last state.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take close                       in the take's own folder
  retake take close main_take_2           from the project's folder
  retake take close main_take_2 --remove  and remove the files that are recorded
  retake take close main_take_2 --remove --dry-run

`retake take switch` brings the take's last files into the project's folder.")]
pub(crate) struct Arguments {
    /// The take: a name, or the beginning of an id [default: the one whose folder this is].
    take: Option<String>,
    /// Remove the files from the folder. What is not held (ignored files, secrets) stays.
    #[arg(long)]
    remove: bool,
    /// Only say what would be recorded and removed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let folder = match &self.take {
            None => context.apart()?.cloned(),
            Some(text) => {
                let thread = context.thread(&looking, self.target.thread.as_deref())?;
                let take = looking.find_take(&thread, text)?.summary.id;
                looking.apart_folder_of(thread.summary.id, take)?
            }
        };
        let folder = folder.ok_or_else(|| {
            Failure::new(
                Code::NotFound,
                "no take is open apart here; `retake take list` shows where takes are",
            )
        })?;
        drop(looking);
        let caller = context.caller(folder.thread, self.target.expect)?;
        let request = PlanRequest::CloseWorktree { folder: Box::new(folder.clone()), remove: self.remove };
        let closed = match context.change_worktree(folder.thread, request, caller, self.dry_run)? {
            Carried::Done(executed) => executed.into_closed()?,
            Carried::Previewed(preview) => return context.report_preview(preview),
        };
        let Some(closed) = closed else {
            let path = folder.path.display().to_string();
            let what = if folder.path.symlink_metadata().is_ok() {
                "is not the folder that was filled for the take, and was left as it is; the take has no folder any more"
            } else {
                "is gone, and no take's folder any more"
            };
            return context.report(&folder, |out, _| {
                let path = sanitize(&path, Lines::Fold);
                writeln!(out, "{path} {what}. What was recorded of its files is kept.")
            });
        };
        context.report(&closed, |out, _| {
            if !closed.seen.files.paths.is_empty() {
                writeln!(out, "Recorded what was changed there since the last look:")?;
                write_report(out, context, &closed.seen.files)?;
            }
            let path = closed.path.display().to_string();
            let what = if closed.removed { "and its files were removed" } else { "and stays as it is" };
            writeln!(out, "{} is no take's folder any more, {what}.", sanitize(&path, Lines::Fold))
        })
    }
}
