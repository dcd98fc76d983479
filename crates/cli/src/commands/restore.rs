//! `retake restore`

use clap::Args;
use retake_timeline::Handling;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::desk::{Careful, Decision, STOPPED};
use crate::failure::{Code, Failure};
use crate::moments::moments;

/// Make files exactly what they were at another moment: all of them, or only some.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake restore 12                       all files as they were at version 12
  retake restore 12 src/main.rs docs      only these
  retake restore \"before the rewrite\"     a moment that was saved under that name
  retake restore take:main src/lib.rs     one file as another take has it
  retake restore 3f9c01                   a snapshot, as `retake snapshot list` names it
  retake restore 12 --dry-run

Unlike undo, this does not ask who changed what: the files become that moment's. What is there now is recorded
first, and `retake undo` brings it back. What is not held (ignored files, secrets) is never touched.")]
pub(crate) struct Arguments {
    /// A version, the name of a saved moment, `take:NAME`, or the beginning of a snapshot's id.
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
        let moments = moments(context, self.target.thread.as_deref())?;
        let (thread, snapshot) = (moments.thread.summary.id, moments.find(&self.moment)?.snapshot);
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
