//! `retake take promote`

use clap::Args;
use retake_timeline::{MoveOptions, PlanRequest, PromoteOutcome, Scope};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::{ConfirmFlags, MoveResult};

/// Turn a take into a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take promote main_take_2                     its title is the name of the take
  retake take promote main_take_2 --title \"The other way\" --switch
  retake take promote --conversation                  the active take; the files stay as they are

The active take cannot be promoted while its files are in the folder and another take's would have to replace them: \
switch to the other take first. An undo in the source thread restores the take and deletes the new thread, unless it \
was changed since.")]
pub(crate) struct Arguments {
    /// Take: name or id prefix [default: the active take].
    take: Option<String>,
    /// Title of the thread [default: the take's name].
    #[arg(long)]
    title: Option<String>,
    /// Make it the current thread.
    #[arg(short, long)]
    switch: bool,
    /// Do not move files, even if the folder should then contain another take's.
    #[arg(long)]
    conversation: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    promoted: PromoteOutcome,
    /// Title of the new thread.
    title: String,
    /// Whether the new thread is now current.
    switched: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let reader = timeline.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let take = match &self.take {
            Some(text) => reader.find().take(&thread, text)?.summary,
            None => thread.summary.active.clone(),
        };
        drop(reader);
        let caller = context.caller(thread.summary.id, self.target.expect)?;
        let scope = if self.conversation { Scope::Conversation } else { Scope::Both };
        let move_options = MoveOptions { scope, ..MoveOptions::default() };
        let request = PlanRequest::Promote { take: take.id, title: self.title };
        let confirm_flags = ConfirmFlags { yes: true, ..ConfirmFlags::default() };
        let promoted =
            match context.execute(thread.summary.id, request, caller, move_options, confirm_flags)? {
                MoveResult::Done(executed) => executed.into_promoted()?,
                MoveResult::Previewed(preview) => return context.report_preview(preview),
            };
        if self.switch {
            context
                .switch_thread(promoted.promoted.thread, context.caller(promoted.promoted.thread, None)?)?;
        }
        let title = promoted.promoted.summary.title.clone();
        let answer = Answer { promoted, title, switched: self.switch };
        context.report(&answer, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            let name = sanitize(&take.name, LineBreaks::Fold);
            let title = sanitize(&answer.title, LineBreaks::Fold);
            let short = answer.promoted.promoted.thread.short();
            writeln!(out, "Promoted take {name} to thread {title} {id}{short}{id:#}.")?;
            let next = if answer.switched {
                "It is now the current thread.".to_owned()
            } else {
                let left = sanitize(&thread.summary.title, LineBreaks::Fold);
                format!("The current thread is still {left}; `retake thread switch {short}` switches to it.")
            };
            writeln!(out, "{muted}{next} `retake undo -t {}` undoes it{muted:#}", thread.summary.id.short())
        })
    }
}
