//! `retake restore`

use clap::Args;
use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_timeline::{Handling, Looking};

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::desk::{Careful, Decision, STOPPED};
use crate::failure::{Code, Failure};

/// Make files exactly what they were at another moment: all of them, or only some.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake restore 12                       all files as they were at version 12
  retake restore 12 src/main.rs docs      only these
  retake restore \"before the rewrite\"     a moment that was saved under that name
  retake restore 3f9c01                   a snapshot, as `retake snapshot list` names it
  retake restore 12 --dry-run

Unlike undo, this does not ask who changed what: the files become that moment's. What is there now is recorded
first, and `retake undo` brings it back. What is not held (ignored files, secrets) is never touched.")]
pub(crate) struct Arguments {
    /// A version, the name of a saved moment, or the beginning of a snapshot's id.
    #[arg(value_name = "MOMENT")]
    moment: String,
    /// Only these files and folders.
    #[arg(value_name = "PATH")]
    paths: Vec<std::path::PathBuf>,
    #[command(flatten)]
    careful: Careful,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let desk = context.desk()?;
        let looking = context.timeline()?.look()?;
        let thread = context.thread(&looking, self.target.thread.as_deref())?.summary.id;
        let snapshot = snapshot(&looking, thread, &self.moment)?;
        drop(looking);
        let only = self.paths.iter().map(|path| context.root_path(path)).collect::<Result<Vec<_>, _>>()?;
        let caller = context.caller(self.target.expect)?;
        let handling = Handling { preview: true, ..Handling::default() };
        if context.looks_ahead(self.careful) {
            let ahead = desk.restore(thread, snapshot, &only, caller.clone(), handling)?;
            if context.look_ahead(&ahead.files)? == Decision::Stop {
                return Err(Failure::new(Code::Refused, STOPPED));
            }
        }
        let handling = Handling { preview: self.careful.dry_run, ..Handling::default() };
        let restored = desk.restore(thread, snapshot, &only, caller, handling)?;
        context.report(&restored, |out, styles| {
            write_report(out, context, &restored.files)?;
            let muted = styles.muted;
            match &restored.done {
                Some(done) => {
                    writeln!(out, "{muted}version {}; `retake undo` takes it back{muted:#}", done.version)
                }
                None => Ok(()),
            }
        })
    }
}

/// The snapshot that a person means.
fn snapshot(looking: &Looking<'_>, thread: ThreadId, text: &str) -> Result<ContentId, Failure> {
    let version = match text.parse() {
        Ok(version) => Some(version),
        Err(_) => looking.saved(thread, text.trim())?,
    };
    if let Some(version) = version {
        // Also says so if there is no such version.
        looking.state_at(thread, version)?;
        return looking.files_at(thread, version)?.map(|at| at.files.after).ok_or_else(|| {
            let message = format!(
                "no files were recorded up to version {version}; `retake snapshot list` shows when they were"
            );
            Failure::new(Code::NotFound, message)
        });
    }
    let found = looking.snapshots_beginning(thread, text)?;
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::new(
            Code::NotFound,
            format!(
                "{text:?} is neither a version, nor a saved moment, nor a snapshot of this thread; `retake snapshot list` shows them"
            ),
        )),
        _ => Err(Failure::new(
            Code::NotFound,
            format!("{text:?} could be {} snapshots; give more of the id", found.len()),
        )),
    }
}
