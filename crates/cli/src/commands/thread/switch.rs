//! `retake thread switch`

use clap::Args;
use retake_timeline::Command;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
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
        let project = context.project()?.id;
        let found = timeline.look()?.find(Some(project), &self.thread)?;
        let mut summary = found.thread.summary;
        if summary.deleted.is_some() {
            let message = "this thread is deleted; `retake thread restore` brings it back";
            return Err(Failure::new(Code::Refused, message));
        }
        if let Some(take) = found.take {
            let switch = Command::Switch { take: take.summary.id };
            summary = context.change(summary.id, switch, None)?.summary;
        }
        timeline.set_current(project, Some(summary.id))?;
        let answer = Answer { thread: summary.id, title: summary.title, take: summary.active.name };
        context.report(&answer, |out, _| {
            let (title, take) = (sanitize(&answer.title, Lines::Fold), sanitize(&answer.take, Lines::Fold));
            writeln!(out, "Working on {title}, take {take}.")
        })
    }
}
