//! Removes tool outputs and pictures of entries from the context, and adds them back. The entries keep them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use retake_model::entry::ContextPart;
use retake_timeline::{ChangeOutcome, Command};

use crate::arguments::Target;
use crate::commands::retry_on_conflict::change_with_retry;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;

/// The parts of entries to change.
#[derive(Args)]
pub(super) struct PartFlags {
    /// The output of tools in these entries.
    #[arg(long, conflicts_with = "list")]
    output: bool,
    /// The pictures and documents in these entries.
    #[arg(long, conflicts_with = "list")]
    images: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartChange {
    Remove,
    Add,
}

impl PartFlags {
    /// Whether the arguments are entries, not paths.
    pub(super) fn are_set(&self) -> bool {
        self.output || self.images
    }

    fn parts(&self) -> BTreeSet<ContextPart> {
        let parts = [(self.output, ContextPart::Output), (self.images, ContextPart::Images)];
        parts.into_iter().filter(|(is_set, _)| *is_set).map(|(_, part)| part).collect()
    }

    /// Changes the entries; each is an operation of its own.
    pub(super) fn change(
        &self,
        context: &Context,
        target: &Target,
        entries: &[PathBuf],
        change: PartChange,
    ) -> Result<(), Failure> {
        let parts = self.parts();
        // All names are resolved first: nothing changes if one is wrong.
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, target)?;
        let mut ids = Vec::new();
        for entry in entries {
            let (position, id) = reader.find().entry(&resolved.take, &entry.to_string_lossy())?;
            let page =
                reader.entries(resolved.thread.summary.id, &resolved.take).page(position..position + 1)?;
            let has = |part: &ContextPart| {
                page.iter().any(|view| view.entry.blocks.iter().any(|block| part.includes(block)))
            };
            if !parts.iter().any(has) {
                let what = if self.output { "output of a tool" } else { "picture" };
                let message = format!(
                    "entry {} has no {what}; `retake context show` lists what entries have",
                    position + 1
                );
                return Err(Failure::new(Code::Refused, message));
            }
            ids.push(id);
        }
        drop(reader);
        let mut done: Option<ChangeOutcome> = None;
        let mut changed = 0;
        for id in ids {
            let outcome = change_with_retry(context, target, |resolved| {
                let reader = context.timeline()?.read()?;
                let (position, _) = reader.find().entry(&resolved.take, &id.to_string())?;
                let views = reader
                    .entries(resolved.thread.summary.id, &resolved.take)
                    .page(position..position + 1)?;
                let view =
                    views.into_iter().next().ok_or_else(|| Failure::not_found("the entry was deleted"))?;
                let mut removed = view.entry.not_in_context();
                match change {
                    PartChange::Remove => removed.extend(&parts),
                    PartChange::Add => removed.retain(|part| !parts.contains(part)),
                }
                let version = view.entry.with_not_in_context(&removed);
                Ok(Command::RewriteEntry { take: resolved.take.id, entry: id, version })
            })?;
            changed += u64::from(outcome.changed());
            done = Some(outcome);
        }
        let Some(done) = done else { return Ok(()) };
        context.report(&done, |out, styles| {
            let (entries, muted) = (counted(changed, "entry", "entries"), styles.muted);
            let verb = match change {
                _ if changed == 0 => return writeln!(out, "Nothing changed: they are that way already."),
                PartChange::Remove => "Removed from the context",
                PartChange::Add => "Added to the context again",
            };
            let undo =
                if changed > 1 { format!("retake undo {changed}") } else { context.undo_command(&done) };
            writeln!(out, "{verb}: {}, of {entries}. {muted}`{undo}` undoes it{muted:#}", self.describe())
        })
    }

    fn describe(&self) -> &'static str {
        match (self.output, self.images) {
            (true, true) => "outputs and pictures",
            (true, false) => "outputs",
            _ => "pictures",
        }
    }
}
