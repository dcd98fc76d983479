//! `retake thread switch`

use clap::Args;
use retake_timeline::Command;
use serde::Serialize;

use crate::context::Context;
use crate::desk::FileFlags;
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
    /// The folder of the thread's project, if it is another one than where the command was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        // A thread that is not found leaves no project behind.
        let here = context.project()?.id;
        let found = timeline.look()?.find(Some(here), &self.thread)?;
        let thread = found.thread.summary.id;
        // The take first: it is asked about where files move, and a refusal leaves everything as it was.
        if let Some(take) = found.take.map(|take| take.summary.id) {
            context.change_takes(thread, Command::Switch { take }, None, FileFlags::default())?;
        }
        timeline.work_on(thread, context.caller(thread, None)?)?;
        let summary = timeline.look()?.thread(thread)?.summary;
        let project = timeline.look()?.queries().project(found.thread.home)?;
        let elsewhere = project.filter(|project| project.id != here).map(|project| project.path);
        let answer =
            Answer { thread, title: summary.title, take: summary.active.name, folder: elsewhere.clone() };
        context.report(&answer, |out, _| {
            let (title, take) = (sanitize(&answer.title, Lines::Fold), sanitize(&answer.take, Lines::Fold));
            match &answer.folder {
                None => writeln!(out, "Working on {title}, take {take}."),
                Some(folder) => {
                    let folder = sanitize(folder, Lines::Fold);
                    writeln!(
                        out,
                        "Thread {title} belongs to {folder}, and is the current one there now, on take {take}. \
                         The current thread of this folder is as it was."
                    )
                }
            }
        })
    }
}
