//! `retake take delete`

use clap::Args;
use retake_model::summary::TakeSummary;
use retake_timeline::Command;
use serde::Serialize;

use super::TakeAnswer;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Delete takes. `retake undo` restores them, one at a time.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take delete main_take_2
  retake take delete first second third
  retake undo                             restores the last one; `retake undo 3` all of them")]
pub(crate) struct Arguments {
    /// Takes: names or id prefixes. If one is not found, none is deleted.
    #[arg(required = true, value_name = "TAKE")]
    takes: Vec<String>,
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    /// The last change, and the take that is active after it.
    #[serde(flatten)]
    last: TakeAnswer,
    /// The deleted takes, in this order.
    deleted: Vec<TakeSummary>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let mut takes: Vec<TakeSummary> = Vec::new();
        for text in &self.takes {
            let take = reader.find().take(&thread, text)?.summary;
            if takes.iter().all(|known| known.id != take.id) {
                takes.push(take);
            }
        }
        drop(reader);
        let (mut expect, mut deleted, mut last) = (self.target.expect, Vec::new(), None);
        for take in takes {
            let delete = Command::DeleteTake { take: take.id };
            let changed = context.change_takes(thread.summary.id, delete, expect, self.files);
            let changed = changed.map_err(|failure| after(failure, &deleted))?;
            let Some(answer) = TakeAnswer::of(changed) else { continue };
            expect = expect.map(|_| answer.done.version);
            deleted.push(take);
            last = Some(answer);
        }
        let Some(last) = last else { return Ok(()) };
        let answer = Answer { last, deleted };
        context.report(&answer, |out, styles| {
            let Answer { last, deleted } = &answer;
            let muted = styles.muted;
            let names: Vec<_> = deleted.iter().map(|take| sanitize(&take.name, LineBreaks::Fold)).collect();
            let (what, it) = if names.len() == 1 { ("take", "it") } else { ("takes", "them") };
            write!(out, "Deleted {what} {}", names.join(", "))?;
            if deleted.iter().any(|take| take.id == thread.summary.active.id) {
                write!(out, "; the active take is now {}", sanitize(&last.take.name, LineBreaks::Fold))?;
            }
            let mut undo = context.undo_command(&last.done);
            if names.len() > 1 {
                undo = format!("{undo} {}", names.len());
            }
            writeln!(out, ". {muted}version {}; `{undo}` restores {it}{muted:#}", last.done.version)?;
            write_if_any(out, context, last.files.as_ref())
        })
    }
}

/// Names the takes that were deleted before a failure.
fn after(mut failure: Failure, deleted: &[TakeSummary]) -> Failure {
    if deleted.is_empty() {
        return failure;
    }
    let names: Vec<&str> = deleted.iter().map(|take| take.name.as_str()).collect();
    failure.message = format!("{}\nDeleted before that: {}", failure.message, names.join(", "));
    failure.with("deleted", names)
}
