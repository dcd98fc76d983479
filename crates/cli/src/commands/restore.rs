//! `retake restore`

use clap::Args;
use retake_timeline::{MoveOptions, PlanRequest};

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::failure::Failure;
use crate::revisions::{revisions, suggest_paths};
use crate::working_copy::{ConfirmFlags, MoveResult};

/// Restore files to another version: all of them, or only some.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake restore 12                       all files of version 12
  retake restore 12 src/main.rs docs      only these
  retake restore \"before the rewrite\"     a saved version
  retake restore take:main src/lib.rs     one file of another take
  retake restore 3f9c01                   a snapshot, by id (see `retake snapshot list`)
  retake restore 12 --dry-run

Unlike undo, this replaces the files no matter who changed them. The current files are recorded first, and `retake undo` \
brings them back. Excluded files (ignored files, secrets) are never touched, except sealed files that the agent's own \
tools replaced.")]
pub(crate) struct Arguments {
    /// Version, name of a saved version, `take:NAME`, or prefix of a snapshot id.
    #[arg(value_name = "REVISION")]
    revision: String,
    /// Limit to these files and folders.
    #[arg(value_name = "PATH")]
    paths: Vec<std::path::PathBuf>,
    #[command(flatten)]
    confirm_flags: ConfirmFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let revisions = revisions(context, self.target.thread.as_deref())?;
        let (thread, snapshot) =
            (revisions.thread.summary.id, revisions.find(&self.revision).map_err(suggest_paths)?.snapshot);
        let path = |path: &std::path::PathBuf| context.root_path_of(thread, path);
        let paths = self.paths.iter().map(path).collect::<Result<Vec<_>, _>>()?;
        let (caller, request) =
            (context.caller(thread, self.target.expect)?, PlanRequest::Restore { snapshot, paths });
        let restored =
            match context.execute(thread, request, caller, MoveOptions::default(), self.confirm_flags)? {
                MoveResult::Done(executed) => executed.into_restored()?,
                MoveResult::Previewed(preview) => return context.report_preview(preview),
            };
        context.report(&restored, |out, styles| {
            write_report(out, context, &restored.files)?;
            let muted = styles.muted;
            match &restored.done {
                Some(done) => {
                    let undo = context.undo_command(done);
                    writeln!(out, "{muted}version {}; `{undo}` undoes it{muted:#}", done.version)
                }
                None => Ok(()),
            }
        })
    }
}
