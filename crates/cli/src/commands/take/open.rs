//! `retake take open`

use std::path::PathBuf;

use clap::Args;
use retake_timeline::PlanRequest;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::desk::Carried;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{Lines, sanitize};

/// Stands for a folder that nobody named; no file can have this name.
const BESIDE: &str = "/";

/// Give a take a folder of its own, so that several takes are alive at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take open main_take_2 --apart                 beside the project's folder
  retake take open main_take_2 --apart ../second-try
  retake take open main_take_2 --apart --dry-run       where, and how many files
  cd ../second-try && retake undo                      commands there mean that take
  retake take close main_take_2 --remove               record its last state, and remove the folder

What is not held (ignored files, secrets) does not come along. The project's folder is not touched.")]
pub(crate) struct Arguments {
    /// The take: a name, or the beginning of an id.
    take: String,
    /// The folder [default: beside the project's, with the take's name added].
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, required = true, default_missing_value = BESIDE)]
    apart: PathBuf,
    /// Only say what would be made.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let thread = context.thread(&looking, self.target.thread.as_deref())?;
        let take = looking.find_take(&thread, &self.take)?.summary;
        let folder = if self.apart.as_os_str() == BESIDE {
            looking.folder_beside(thread.home, &take.name)?.ok_or_else(|| {
                Failure::new(Code::Usage, "this folder has none beside it; name one after --apart")
            })?
        } else {
            context.directory().join(&self.apart)
        };
        drop(looking);
        let thread = thread.summary.id;
        let caller = context.caller(thread, self.target.expect)?;
        let request = PlanRequest::OpenWorktree { take: take.id, folder };
        let opened = match context.change_worktree(thread, request, caller, self.dry_run)? {
            Carried::Done(executed) => executed.into_opened()?,
            Carried::Previewed(preview) => return context.report_preview(preview),
        };
        context.report(&opened, |out, styles| {
            let (command, name) = (styles.command, sanitize(&take.name, Lines::Fold));
            let path = opened.path.display().to_string();
            let path = sanitize(&path, Lines::Fold);
            let files = counted(opened.files, "file", "files");
            writeln!(out, "Take {name} is in {path} now: {files}.")?;
            writeln!(out, "Commands there mean this take; {command}retake take close{command:#} ends it.")
        })
    }
}
