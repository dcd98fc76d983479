//! `retake take branch`

use clap::Args;
use retake_timeline::Command;

use super::{TakeAnswer, new_take};
use crate::arguments::Target;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Create a take that ends at an entry, and switch to it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take branch                      after the last entry
  retake take branch 4 --name shorter
  retake take branch 2 -k main            from a take that is not active")]
pub(crate) struct Arguments {
    /// Last entry of the new take: number, `last` or id prefix [default: the last entry].
    entry: Option<String>,
    /// Name of the new take [default: the next free name].
    #[arg(short, long)]
    name: Option<String>,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes whose author is unknown, or that are in the thread of which this one is a copy.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let found = match &self.entry {
            Some(text) => Some(reader.find().entry(&resolved.take, text)?),
            // An empty take can be branched too.
            None if resolved.take.entries.is_empty() => None,
            None => Some(reader.find().entry(&resolved.take, "last")?),
        };
        drop(reader);
        let at = found.map(|(_, entry)| entry);
        let branch = Command::Branch { from: resolved.take.id, at, name: self.name };
        let files = self.files.with_shared(self.shared);
        let changed = context.change_takes(resolved.thread.summary.id, branch, self.target.expect, files)?;
        let Some(answer) = TakeAnswer::of(changed) else { return Ok(()) };
        let (take, place) = new_take(context, &answer.done)?;
        let answer = TakeAnswer { take, ..answer };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (name, from) = (
                sanitize(&answer.take.name, LineBreaks::Fold),
                sanitize(&resolved.take.name, LineBreaks::Fold),
            );
            match found {
                Some((position, _)) => {
                    write!(out, "Branched {name} from {from} after entry {}", position + 1)?;
                }
                None => write!(out, "Branched {name} from {from}, which has no entries")?,
            }
            writeln!(
                out,
                "{place}. {muted}version {}; `{}` undoes it{muted:#}",
                answer.done.version,
                context.undo_command(&answer.done)
            )?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}
