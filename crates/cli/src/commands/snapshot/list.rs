//! `retake snapshot list`

use clap::Args;
use retake_surface::page::MAX_SNAPSHOTS;
use retake_timeline::ThreadFiles;
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// List snapshots, newest first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake snapshot list
  retake snapshot list --limit 100 --before 40
  retake restore 12                       restore the files of version 12

For a promoted thread, snapshots from before the promotion follow. Their versions belong to the source thread; restore \
them by id.")]
pub(crate) struct Arguments {
    /// Maximum number of results.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=MAX_SNAPSHOTS as u64))]
    limit: u64,
    /// Show only snapshots before this version.
    #[arg(long, value_name = "VERSION")]
    before: Option<u64>,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    snapshots: Vec<ThreadFiles>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let row = context.thread(&reader, self.target.thread.as_deref())?;
        let before = match self.before {
            Some(version) => reader.queries().operation(row.number, version)?.map(|stored| stored.sequence),
            None => None,
        };
        let thread = row.summary.id;
        let answer = Answer { snapshots: reader.files(thread).of_lineage(before, self.limit as usize)? };
        if answer.snapshots.is_empty() {
            context.note_empty(
                "No files are recorded for this thread yet",
                "`retake snapshot take` records them",
            )?;
        }
        context.answer(&answer, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            let mut shown = thread;
            for ThreadFiles { thread, at, .. } in &answer.snapshots {
                if *thread != shown {
                    shown = *thread;
                    writeln!(out, "{muted}Before the promotion, in thread {}:{muted:#}", shown.short())?;
                }
                let what = describe::operation(&at.kind);
                let (what, when) = (sanitize(&what, LineBreaks::Fold), context.ago(at.time));
                let short = at.files.after.short();
                writeln!(out, "{:>6}  {id}{short}{id:#}  {what}  {muted}{when}{muted:#}", at.version)?;
            }
            Ok(())
        })
    }
}
