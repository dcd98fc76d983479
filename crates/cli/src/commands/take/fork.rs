//! `retake take fork`

use clap::Args;
use retake_model::id::TakeId;
use retake_model::summary::TakeSummary;
use retake_model::take::{Attachments, Take};
use retake_render::describe::draft;
use retake_timeline::{ChangeOutcome, Command, FileReport, ReadError};
use serde::Serialize;

use super::new_take;
use crate::arguments::Target;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Create a take that ends before a message, which becomes its draft.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take fork 3                      rephrase message 3
  retake take fork 3 --name retry
  retake draft set                        then edit the message in your editor")]
pub(crate) struct Arguments {
    /// Message to fork at: number, `last` or id prefix.
    entry: String,
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

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    done: ChangeOutcome,
    /// The active take.
    take: TakeSummary,
    /// The message, now the draft.
    draft: String,
    /// The pictures of the message, now attached to the draft.
    draft_pictures: Attachments,
    /// File changes.
    files: Option<FileReport>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let (position, at) = reader.find().entry(&resolved.take, &self.entry)?;
        drop(reader);
        let fork = Command::Fork { from: resolved.take.id, at, name: self.name };
        let files = self.files.with_shared(self.shared);
        let changed = context.change_takes(resolved.thread.summary.id, fork, self.target.expect, files)?;
        let Some((done, files)) = changed.and_then(|changed| Some((changed.done?, changed.files))) else {
            return Ok(());
        };
        let (take, place) = new_take(context, &done)?;
        // The fork succeeded, even if its draft cannot be read.
        let forked = as_forked(context, &done, take.id).ok().flatten();
        let preview = forked.as_ref().map(draft).unwrap_or_default();
        let (draft, draft_pictures) = forked.map(|take| (take.draft, take.attached)).unwrap_or_default();
        let answer = Answer { take, draft, draft_pictures, done, files };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (name, from) =
                (sanitize(&answer.take.name, LineBreaks::Fold), sanitize(&resolved.take.name, LineBreaks::Fold));
            writeln!(
                out,
                "Forked {name} from {from} before entry {}{place}. {muted}version {}; `{}` undoes it{muted:#}",
                position + 1,
                answer.done.version,
                context.undo_command(&answer.done),
            )?;
            writeln!(out, "Draft: {}", sanitize(&preview, LineBreaks::Fold))?;
            write_if_any(out, context, answer.files.as_ref())
        })
    }
}

/// The take as the fork left it, ignoring later changes.
fn as_forked(context: &Context, done: &ChangeOutcome, take: TakeId) -> Result<Option<Take>, Failure> {
    let reader = context.timeline()?.read()?;
    let state = reader.state_at(done.thread, done.version)?;
    Ok(state.take(&reader.queries(), take).map_err(ReadError::from)?)
}
