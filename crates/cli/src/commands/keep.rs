//! `retake keep`

use clap::Args;
use retake_model::operation::OperationKind;
use retake_timeline::Command;
use serde::Serialize;

use super::take::TakeAnswer;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::working_copy::FileFlags;

/// Keep a take: make it active with its files, and delete its alternatives. One undo reverts all of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake compare main main_take_1         which one is better?
  retake keep main_take_1                 this one; main is deleted
  retake keep main_take_1 --dry-run       preview
  retake undo                             all of it is back

Alternatives are the takes that went on differently from the newest fork of this one: the take that it was forked from, \
if it went on, and others that were forked at the same place. Takes that were forked from those later stay. A deleted \
take is in no list; undo and jump bring it back.")]
pub(crate) struct Arguments {
    /// Take: name or id prefix.
    take: String,
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    kept: TakeAnswer,
    /// Names of the deleted takes.
    deleted: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?;
        let take = reader.find().take(&thread, &self.take)?.summary.id;
        drop(reader);
        let keep = Command::Keep { take };
        let changed = context.change_takes(thread.summary.id, keep, self.target.expect, self.files)?;
        let Some(kept) = TakeAnswer::of(changed) else { return Ok(()) };
        let deleted = match &kept.done.kind {
            Some(OperationKind::TakeKept { deleted, .. }) => deleted.clone(),
            _ => Vec::new(),
        };
        let answer = Answer { kept, deleted };
        context.report(&answer, |out, styles| {
            let Answer { kept, deleted } = &answer;
            let muted = styles.muted;
            let name = sanitize(&kept.take.name, LineBreaks::Fold);
            if !kept.done.changed() {
                return writeln!(out, "{name} is the active take, and has no alternatives.");
            }
            let names: Vec<_> = deleted.iter().map(|name| sanitize(name, LineBreaks::Fold)).collect();
            let deleted =
                if names.is_empty() { String::new() } else { format!(" and deleted {}", names.join(", ")) };
            writeln!(
                out,
                "Kept {name}{deleted}. {muted}version {}; `{}` undoes it{muted:#}",
                kept.done.version,
                context.undo_command(&kept.done)
            )?;
            write_if_any(out, context, kept.files.as_ref())
        })
    }
}
