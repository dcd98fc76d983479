//! `retake take branch`

use clap::Args;
use retake_timeline::Command;

use super::{NowOn, new_take};
use crate::arguments::Target;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::desk::FileFlags;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Branch off at an entry, keeping everything up to it, and go there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take branch                      after the last entry
  retake take branch 4 --name shorter
  retake take branch 2 -k main            from another take than the active one")]
pub(crate) struct Arguments {
    /// The last entry to keep: its number, `last`, or the beginning of its id [default: the last one].
    entry: Option<String>,
    /// What to call the new take [default: the next free name].
    #[arg(short, long)]
    name: Option<String>,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes that may be another command's, or that the thread has in common with the one it is a copy of.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let meant = context.meant(&looking, &self.target)?;
        let found = match &self.entry {
            Some(text) => Some(looking.find_entry(&meant.take, text)?),
            // A take without entries can be branched too: there is nothing to share yet.
            None if meant.take.entries.is_empty() => None,
            None => Some(looking.find_entry(&meant.take, "last")?),
        };
        drop(looking);
        let at = found.map(|(_, entry)| entry);
        let branch = Command::Branch { from: meant.take.id, at, name: self.name };
        let files = self.files.with_shared(self.shared);
        let changed = context.change_takes(meant.thread.summary.id, branch, self.target.expect, files)?;
        let Some(answer) = NowOn::of(changed) else { return Ok(()) };
        let (take, place) = new_take(context, &answer.done)?;
        let answer = NowOn { take, ..answer };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (name, from) =
                (sanitize(&answer.take.name, Lines::Fold), sanitize(&meant.take.name, Lines::Fold));
            match found {
                Some((position, _)) => {
                    write!(out, "Branched {name} off {from} after entry {}", position + 1)?;
                }
                None => write!(out, "Branched {name} off {from}, which has no entries")?,
            }
            writeln!(
                out,
                "{place}. {muted}version {}; `{}` takes it back{muted:#}",
                answer.done.version,
                context.undo_command(&answer.done)
            )?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}
