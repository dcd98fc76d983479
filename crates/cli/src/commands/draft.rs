//! `retake draft`: what is being typed and not yet sent.

mod clear;
mod set;
mod show;

use clap::{Args, Subcommand};
use retake_model::entry::preview;
use retake_model::operation::Version;

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
    /// Empty the draft.
    Clear(clear::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::Show) {
            Command::Show(arguments) => arguments.run(context),
            Command::Set(arguments) => arguments.run(context),
            Command::Clear(arguments) => arguments.run(context),
        }
    }
}

/// Writes a draft, and says what came of it. One that was written by hand is kept where it is refused.
fn write(
    context: &Context,
    meant: &Meant,
    text: String,
    expect: Option<Version>,
    by_hand: Option<&str>,
) -> Result<(), Failure> {
    let words = preview(&text);
    let set = retake_timeline::Command::SetDraft { take: meant.take.id, text };
    let done = context.change_keeping(meant.thread.summary.id, set, expect, by_hand)?;
    context.report(&done, |out, styles| {
        let (muted, take) = (styles.muted, sanitize(&meant.take.name, Lines::Fold));
        match (done.changed(), words.is_empty()) {
            (false, _) => return writeln!(out, "Nothing to change."),
            (true, true) => write!(out, "The draft of {take} is empty now.")?,
            (true, false) => write!(out, "The draft of {take} is “{}” now.", sanitize(&words, Lines::Fold))?,
        }
        writeln!(out, " {muted}version {}; `retake undo` takes it back{muted:#}", done.version)
    })
}
