//! `retake draft`: what is being typed and not yet sent.

mod attach;
mod clear;
mod detach;
mod set;
mod show;

use clap::{Args, Subcommand};
use retake_model::operation::Version;
use retake_timeline::LookError;
use retake_words::story::draft;

use super::defaulted::Defaulted;
use crate::context::{Context, Meant};
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// The draft of a take: what is being typed and not yet sent.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake draft
  retake draft set \"Only the dates, please\"
  retake draft attach screenshot.png      a picture that goes along
  retake draft clear
  retake entry add --draft                send it")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Defaulted<Command, show::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the draft (this is the default).
    Show(show::Arguments),
    /// Write the draft. Changes that follow each other quickly are one step of history.
    Set(set::Arguments),
    /// Let pictures go along with the draft.
    Attach(attach::Arguments),
    /// Let a picture go along no more.
    Detach(detach::Arguments),
    /// Empty the draft: its text and its pictures.
    Clear(clear::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::Show) {
            Command::Show(arguments) => arguments.run(context),
            Command::Set(arguments) => arguments.run(context),
            Command::Attach(arguments) => arguments.run(context),
            Command::Detach(arguments) => arguments.run(context),
            Command::Clear(arguments) => arguments.run(context),
        }
    }
}

/// Changes a draft, and says what it is then. One that was written by hand is kept where it is refused.
fn change(
    context: &Context,
    meant: &Meant,
    command: retake_timeline::Command,
    expect: Option<Version>,
    by_hand: Option<&str>,
) -> Result<(), Failure> {
    let done = context.change_keeping(meant.thread.summary.id, command, expect, by_hand)?;
    let looking = context.timeline()?.look()?;
    let now = looking.state_at(done.thread, done.version)?.take(&looking.queries(), meant.take.id);
    let words = now.map_err(LookError::from)?.map(|take| draft(&take)).unwrap_or_default();
    context.report(&done, |out, styles| {
        let (muted, take) = (styles.muted, sanitize(&meant.take.name, Lines::Fold));
        match (done.changed(), words.is_empty()) {
            (false, _) => return writeln!(out, "Nothing to change."),
            (true, true) => write!(out, "The draft of {take} is empty now.")?,
            (true, false) => write!(out, "The draft of {take} is “{}” now.", sanitize(&words, Lines::Fold))?,
        }
        let undo = context.undo_command(&done);
        writeln!(out, " {muted}version {}; `{undo}` takes it back{muted:#}", done.version)
    })
}
