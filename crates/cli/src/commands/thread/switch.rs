//! `retake thread switch`

use clap::Args;
use retake_timeline::Command;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Switch to another thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread switch \"Fix the login\"
  retake thread switch 7f3kq2p9
  retake thread switch \"Fix the login/main_take_2\"")]
pub(crate) struct Arguments {
    /// Thread (title or id prefix), or THREAD/TAKE.
    pub(in crate::commands) thread: String,
}

#[derive(Serialize)]
struct Answer {
    thread: retake_model::id::ThreadId,
    title: String,
    take: String,
    /// The folder of the thread's project, if it differs from the current folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        // A failed lookup must not create a project.
        let here = context.project()?.id;
        let found = timeline.read()?.find().thread(Some(here), &self.thread)?;
        let thread = found.thread.summary.id;
        // The take first: switching it may ask for confirmation, and a refusal must leave everything unchanged.
        if let Some(take) = found.take.map(|take| take.summary.id) {
            context.change_takes(thread, Command::Switch { take }, None, FileFlags::default())?;
        }
        context.switch_thread(thread, context.caller(thread, None)?)?;
        let summary = timeline.read()?.thread(thread)?.summary;
        let project = timeline.read()?.queries().project(found.thread.home)?;
        let elsewhere = project.filter(|project| project.id != here).map(|project| project.path);
        let answer =
            Answer { thread, title: summary.title, take: summary.active.name, folder: elsewhere.clone() };
        context.report(&answer, |out, _| {
            let (title, take) =
                (sanitize(&answer.title, LineBreaks::Fold), sanitize(&answer.take, LineBreaks::Fold));
            match &answer.folder {
                None => writeln!(out, "Switched to {title}, take {take}."),
                Some(folder) => {
                    let folder = sanitize(folder, LineBreaks::Fold);
                    writeln!(
                        out,
                        "Switched {folder} to thread {title}, take {take}. \
                         The current thread of this folder did not change."
                    )
                }
            }
        })
    }
}
