//! `retake draft`: the unsent message of a take.

mod attach;
mod clear;
mod detach;
mod set;
mod show;

use clap::{Args, Subcommand};
use retake_model::operation::Version;
use retake_render::describe::draft;
use retake_timeline::ReadError;

use super::defaulted::WithDefault;
use crate::context::{Context, ResolvedTarget};
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show and edit the draft: the unsent message of a take.
#[derive(Args)]
// Without this, clap reports two groups of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake draft
  retake draft set \"Only the dates, please\"
  retake draft attach screenshot.png      attach a picture
  retake draft clear
  retake entry add --draft                send it")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, show::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the draft (the default command).
    Show(show::Arguments),
    /// Set the text of the draft. Changes in quick succession are one undo step.
    Set(set::Arguments),
    /// Attach pictures and PDF documents to the draft.
    Attach(attach::Arguments),
    /// Remove a picture or document from the draft.
    Detach(detach::Arguments),
    /// Clear the text and attachments of the draft.
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

/// Changes the draft and reports its new content. If a hand-written text is refused, it is saved to a file.
fn change(
    context: &Context,
    resolved: &ResolvedTarget,
    command: retake_timeline::Command,
    expect: Option<Version>,
    by_hand: Option<&str>,
) -> Result<(), Failure> {
    let done = context.change_preserving(resolved.thread.summary.id, command, expect, by_hand)?;
    let reader = context.timeline()?.read()?;
    let now = reader.state_at(done.thread, done.version)?.take(&reader.queries(), resolved.take.id);
    let words = now.map_err(ReadError::from)?.map(|take| draft(&take)).unwrap_or_default();
    context.report(&done, |out, styles| {
        let (muted, take) = (styles.muted, sanitize(&resolved.take.name, LineBreaks::Fold));
        match (done.changed(), words.is_empty()) {
            (false, _) => return writeln!(out, "Nothing to change."),
            (true, true) => write!(out, "Cleared the draft of {take}.")?,
            (true, false) => write!(out, "Draft of {take}: “{}”.", sanitize(&words, LineBreaks::Fold))?,
        }
        let undo = context.undo_command(&done);
        writeln!(out, " {muted}version {}; `{undo}` undoes it{muted:#}", done.version)
    })
}
