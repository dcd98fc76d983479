//! `retake draft show`

use std::io::Write;

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::take::{Attachment, Attachments};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show the draft.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft
  retake draft show -k main_take_2 --json
  retake draft show --text > message.md     the text alone, byte for byte")]
pub(crate) struct Arguments {
    /// Print only the text, byte for byte. Refused on a terminal, which stored control sequences could affect.
    #[arg(long, conflicts_with = "json")]
    text: bool,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    take: TakeId,
    draft: String,
    pictures: Attachments,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &(&self.target).into())?;
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        let answer = Answer { thread, take, draft: resolved.take.draft, pictures: resolved.take.attached };
        if self.text {
            if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
                let message =
                    "stored text is not written to a terminal unescaped; redirect it to a file or a pipe";
                return Err(Failure::new(Code::Refused, message));
            }
            let written = std::io::stdout().write_all(answer.draft.as_bytes());
            return Ok(crate::ui::pager::ignore_closed_pipe(written)?);
        }
        if answer.draft.is_empty() && answer.pictures.is_empty() {
            context.note_empty("The draft is empty", "`retake draft set` writes one")?;
        }
        context.answer(&answer, |out, styles| {
            if !answer.draft.is_empty() {
                writeln!(out, "{}", sanitize(&answer.draft, LineBreaks::Keep))?;
            }
            let (id, muted) = (styles.id, styles.muted);
            for (number, Attachment { media, picture }) in (1..).zip(answer.pictures.iter()) {
                let media = sanitize(media, LineBreaks::Fold);
                writeln!(
                    out,
                    "{muted}picture {number}{muted:#} {id}{}{id:#} {muted}{media}{muted:#}",
                    picture.short()
                )?;
            }
            Ok(())
        })
    }
}
