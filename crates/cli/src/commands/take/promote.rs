//! `retake take promote`

use clap::Args;
use retake_timeline::{Halves, Handling, PlanRequest, Promoted};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::desk::{Careful, Carried};
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Make a take a thread of its own.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take promote                     the active take, under its own name
  retake take promote main_take_2 --title \"The other way\" --switch

The active take is refused while its files are in the folder and those of another take belong there afterwards:
switch to the other take first. An undo in the thread that it left brings the take back there; the new thread is put away with it, unless
somebody has worked on it since.")]
pub(crate) struct Arguments {
    /// The take: a name, or the beginning of an id [default: the active one].
    take: Option<String>,
    /// What to call the thread [default: as the take was called].
    #[arg(long)]
    title: Option<String>,
    /// Work on the new thread.
    #[arg(short, long)]
    switch: bool,
    /// Leave the files in the folder as they are, even if another take's belong there afterwards.
    #[arg(long)]
    conversation: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    promoted: Promoted,
    /// What the new thread is called.
    title: String,
    /// Whether it is the project's current thread now.
    switched: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let looking = timeline.look()?;
        let thread = context.thread(&looking, self.target.thread.as_deref())?;
        let take = match &self.take {
            Some(text) => looking.find_take(&thread, text)?.summary,
            None => thread.summary.active.clone(),
        };
        drop(looking);
        let caller = context.caller(thread.summary.id, self.target.expect)?;
        let halves = if self.conversation { Halves::Conversation } else { Halves::Both };
        let handling = Handling { halves, ..Handling::default() };
        let request = PlanRequest::Promote { take: take.id, title: self.title };
        let careful = Careful { yes: true, ..Careful::default() };
        let promoted = match context.carry_out(thread.summary.id, request, caller, handling, careful)? {
            Carried::Done(executed) => executed.into_promoted()?,
            Carried::Previewed(preview) => return context.report_preview(preview),
        };
        if self.switch {
            timeline.work_on(promoted.promoted.thread, context.caller(promoted.promoted.thread, None)?)?;
        }
        let title = promoted.promoted.summary.title.clone();
        let answer = Answer { promoted, title, switched: self.switch };
        context.report(&answer, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            let name = sanitize(&take.name, Lines::Fold);
            let title = sanitize(&answer.title, Lines::Fold);
            let short = answer.promoted.promoted.thread.short();
            writeln!(out, "Promoted take {name} to thread {title} {id}{short}{id:#}.")?;
            let next = if answer.switched {
                "It is the current thread now.".to_owned()
            } else {
                let left = sanitize(&thread.summary.title, Lines::Fold);
                format!("You are still on {left}; `retake thread switch {short}` goes there.")
            };
            writeln!(
                out,
                "{muted}{next} `retake undo -t {}` takes it back{muted:#}",
                thread.summary.id.short()
            )
        })
    }
}
