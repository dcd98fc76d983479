//! `retake thread switch`

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Work on another thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread switch \"Fix the login\"
  retake thread switch 7f3kq2p9
  retake thread switch \"Fix the login/main_take_2\"")]
pub(crate) struct Arguments {
    /// The thread: a title, or the beginning of an id; THREAD/TAKE for a take.
    thread: String,
}

#[derive(Serialize)]
struct Answer {
    thread: retake_model::id::ThreadId,
    title: String,
    take: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        // A thread that is not found leaves no project behind.
        let found = timeline.look()?.find(Some(context.project()?.id), &self.thread)?;
        let project = context.own_project()?.id;
        let take = found.take.map(|take| take.summary.id);
        let caller = context.caller(None)?;
        let summary = timeline.work_on(project, found.thread.summary.id, take, caller)?.summary;
        let answer = Answer { thread: summary.id, title: summary.title, take: summary.active.name };
        context.report(&answer, |out, _| {
            let (title, take) = (sanitize(&answer.title, Lines::Fold), sanitize(&answer.take, Lines::Fold));
            writeln!(out, "Working on {title}, take {take}.")
        })
    }
}
