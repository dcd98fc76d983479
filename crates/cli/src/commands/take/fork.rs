//! `retake take fork`

use clap::Args;
use retake_model::id::TakeId;
use retake_model::summary::TakeSummary;
use retake_model::take::{Attachments, Take};
use retake_timeline::{Command, Done, FileReport, LookError};
use retake_words::story::draft;
use serde::Serialize;

use super::new_take;
use crate::arguments::Target;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::desk::FileFlags;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Go back to a user message: everything before it, the message itself as the draft.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take fork 3                      say message 3 differently
  retake take fork 3 --name retry
  retake draft set                        then write it anew, in your editor")]
pub(crate) struct Arguments {
    /// The user message: its number, `last`, or the beginning of its id.
    entry: String,
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

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    done: Done,
    /// The take that is active now.
    take: TakeSummary,
    /// The message, which is its draft now.
    draft: String,
    /// The pictures of the message, which go along with it.
    draft_pictures: Attachments,
    /// What became of files.
    files: Option<FileReport>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let meant = context.meant(&looking, &self.target)?;
        let (position, at) = looking.find_entry(&meant.take, &self.entry)?;
        drop(looking);
        let fork = Command::Fork { from: meant.take.id, at, name: self.name };
        let files = self.files.with_shared(self.shared);
        let changed = context.change_takes(meant.thread.summary.id, fork, self.target.expect, files)?;
        let Some((done, files)) = changed.and_then(|changed| Some((changed.done?, changed.files))) else {
            return Ok(());
        };
        let (take, place) = new_take(context, &done)?;
        // The fork is made, whether its draft can be shown or not.
        let forked = as_forked(context, &done, take.id).ok().flatten();
        let preview = forked.as_ref().map(draft).unwrap_or_default();
        let (draft, draft_pictures) = forked.map(|take| (take.draft, take.attached)).unwrap_or_default();
        let answer = Answer { take, draft, draft_pictures, done, files };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (name, from) =
                (sanitize(&answer.take.name, Lines::Fold), sanitize(&meant.take.name, Lines::Fold));
            writeln!(
                out,
                "Forked {name} off {from} before entry {}{place}. {muted}version {}; `{}` takes it back{muted:#}",
                position + 1,
                answer.done.version,
                context.undo_command(&answer.done),
            )?;
            writeln!(out, "The message is the draft now: {}", sanitize(&preview, Lines::Fold))?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}

/// The take as the fork left it, whatever happened to it since.
fn as_forked(context: &Context, done: &Done, take: TakeId) -> Result<Option<Take>, Failure> {
    let looking = context.timeline()?.look()?;
    let state = looking.state_at(done.thread, done.version)?;
    Ok(state.take(&looking.queries(), take).map_err(LookError::from)?)
}
