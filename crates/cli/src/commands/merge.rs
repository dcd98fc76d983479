//! `retake merge`

use clap::Args;
use retake_model::operation::OperationKind;
use retake_timeline::{FileError, ReadError, Scope};
use serde::Serialize;

use super::take::TakeAnswer;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Merge another take into the active one: its file changes, and its last answer. One undo reverts all of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake merge second --dry-run           preview, with conflicts
  retake merge second                     files and conclusion
  retake merge second --files             only its file changes
  retake merge second --conversation      only its last answer, as an entry that names its source
  retake merge second --conflicts mark    write both versions of conflicting files

The changes of the other take since both were forked are applied to the folder, path by path; your own edits stay. A file \
that both changed differently is a conflict: it is reported, and stays as it is unless --conflicts says otherwise. The \
other take is not changed; files of a take with a worktree are those last recorded there.")]
pub(crate) struct Arguments {
    /// Take to merge: name or id prefix.
    take: String,
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    merged: TakeAnswer,
    /// The number of the entry with the conclusion; `None` if there is none.
    entry: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let scope = self.files.move_options().scope;
        if scope == Scope::Files && !context.config.files.enabled {
            return Err(FileError::FilesDisabled.into());
        }
        let reader = context.timeline()?.read()?;
        let row = context.thread(&reader, self.target.thread.as_deref())?;
        let thread = row.summary.id;
        if context.worktree_of(thread)?.is_some() {
            let message = "takes are merged into the active take; run this in the project's folder";
            return Err(Failure::new(Code::Refused, message));
        }
        let state = reader.state(thread)?;
        let id = reader.find().take(&row, &self.take)?.summary.id;
        let queries = reader.queries();
        let into = state.active_take(&queries).map_err(ReadError::from)?;
        let from = state.take(&queries, id).map_err(ReadError::from)?;
        let from = from.ok_or_else(|| Failure::new(Code::NotFound, "the take was deleted"))?;
        let merge = reader.merge(thread, (&into, &from), scope, context.now())?;
        drop(queries);
        drop(reader);
        let changed = context.change_takes(thread, merge, self.target.expect, self.files)?;
        let Some(merged) = TakeAnswer::of(changed) else { return Ok(()) };
        let entry = match &merged.done.kind {
            Some(OperationKind::TakeMerged { added, .. }) => added.map(|added| added.position + 1),
            _ => None,
        };
        let answer = Answer { merged, entry };
        context.report(&answer, |out, styles| {
            let Answer { merged, entry } = &answer;
            let muted = styles.muted;
            let (from, into) =
                (sanitize(&from.name, LineBreaks::Fold), sanitize(&into.name, LineBreaks::Fold));
            if !merged.done.changed() {
                writeln!(out, "{from} has nothing that {into} lacks.")?;
                return write_if_any(out, context, merged.files.as_ref());
            }
            let entry = entry.map(|number| format!("; its conclusion is entry {number}")).unwrap_or_default();
            writeln!(
                out,
                "Merged {from} into {into}{entry}. {muted}version {}; `{}` undoes it{muted:#}",
                merged.done.version,
                context.undo_command(&merged.done)
            )?;
            write_if_any(out, context, merged.files.as_ref())
        })
    }
}
