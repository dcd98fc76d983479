//! `retake draft show`

use std::io::Write;

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{Lines, sanitize};

/// Show the draft.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft
  retake draft show -k main_take_2 --json
  retake draft show --text > message.md     the text alone, to the byte")]
pub(crate) struct Arguments {
    /// The text alone, exactly as it is stored. Refused on a terminal, which it could take over.
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
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let meant = context.meant(&context.timeline()?.look()?, &(&self.target).into())?;
        let answer = Answer { thread: meant.thread.summary.id, take: meant.take.id, draft: meant.take.draft };
        if self.text {
            if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
                let message =
                    "stored text is not written to a terminal as it is; send it to a file or a pipe";
                return Err(Failure::new(Code::Refused, message));
            }
            let written = std::io::stdout().write_all(answer.draft.as_bytes());
            return Ok(crate::ui::pager::reader_may_leave(written)?);
        }
        if answer.draft.is_empty() {
            context.remark("There is no draft. `retake draft set` writes one.")?;
        }
        context.answer(&answer, |out, _| {
            if answer.draft.is_empty() {
                Ok(())
            } else {
                writeln!(out, "{}", sanitize(&answer.draft, Lines::Keep))
            }
        })
    }
}
