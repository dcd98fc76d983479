//! `retake entry show`

use std::io::Write;

use clap::Args;

use crate::arguments::TakeTarget;
use crate::commands::thread::{EntryFormat, write_entry};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Show one entry in full.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry show last
  retake entry show 3 --source              the Markdown source
  retake entry show 3 --text > answer.md    the text alone, byte for byte")]
pub(crate) struct Arguments {
    /// Entry: number, `last` or id prefix.
    entry: String,
    /// Print only the text, byte for byte. Refused on a terminal, which stored control sequences could affect.
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// Show the Markdown source. `retake entry source` makes this permanent.
    #[arg(long)]
    source: bool,
    #[command(flatten)]
    target: TakeTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &(&self.target).into())?;
        let (position, _) = reader.find().entry(&resolved.take, &self.entry)?;
        let views =
            reader.entries(resolved.thread.summary.id, &resolved.take).page(position..position + 1)?;
        let Some(view) = views.first() else {
            return Err(Failure::new(Code::NotFound, "the entry was deleted"));
        };
        if self.text {
            if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
                let message =
                    "stored text is not written to a terminal unescaped; redirect it to a file or a pipe";
                return Err(Failure::new(Code::Refused, message));
            }
            let written = std::io::stdout().write_all(view.entry.text().as_bytes());
            return Ok(crate::ui::pager::ignore_closed_pipe(written)?);
        }
        let manner = EntryFormat { full: true, source: self.source };
        context.answer(view, |out, _| write_entry(out, context, view, manner))
    }
}
