//! `retake entry edit`

use std::path::PathBuf;

use clap::Args;
use retake_model::id::EntryId;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::{Context, ResolvedTarget};
use crate::failure::{Code, Failure, preserve};
use crate::ui::command::environment;
use crate::ui::editor::EditOutcome;
use crate::ui::input::{Source, Stdin};

/// Edit the text of an entry. Role, time, usage and thinking stay the same.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry edit                       the last entry, in your editor
  retake entry edit 4
  retake entry edit last \"What I meant is this.\"
  retake entry edit 4 --file corrected.md")]
pub(crate) struct Arguments {
    /// Entry: number, `last` or id prefix.
    #[arg(default_value = "last")]
    entry: String,
    /// New text [default: from --file, a pipe, or the editor].
    text: Option<String>,
    /// Read the text from a file; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// Fails if this entry changed while the editor was open; other changes are fine.
fn unchanged_since(
    context: &Context,
    resolved: &ResolvedTarget,
    entry: EntryId,
    before: &str,
) -> Result<(), Failure> {
    let reader = context.timeline()?.read()?;
    let state = reader.state(resolved.thread.summary.id)?;
    let take = state.take(&reader.queries(), resolved.take.id).map_err(retake_timeline::ReadError::from)?;
    let now = match take {
        Some(take) => reader
            .entries(resolved.thread.summary.id, &take)
            .get(entry)?
            .map(|(_, version)| version.editable_text()),
        None => None,
    };
    match now {
        Some(now) if now != before => Err(Failure::new(
            Code::VersionConflict,
            "the entry changed while you were editing it; run the command again",
        )),
        // The change itself refuses a deleted entry.
        _ => Ok(()),
    }
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let (position, entry) = reader.find().entry(&resolved.take, &self.entry)?;
        let before =
            reader.entries(resolved.thread.summary.id, &resolved.take).page(position..position + 1)?;
        let before = before.first().map(|view| view.entry.editable_text()).unwrap_or_default();
        drop(reader);
        let source = Source::choose(self.text, self.file, Stdin::detect(), &before)?;
        let in_editor = matches!(source, Source::Editor { .. });
        let text = match source.read(std::io::stdin(), &environment)? {
            EditOutcome::Changed(text) => text,
            EditOutcome::Unchanged => before.clone(),
        };
        // Editors and pipes add a final line break that the entry did not have.
        let text =
            if before.ends_with('\n') { text } else { text.strip_suffix('\n').unwrap_or(&text).to_owned() };
        let thread = resolved.thread.summary.id;
        let kept = in_editor.then(|| text.clone());
        let edit = Command::EditEntry { take: resolved.take.id, entry, text };
        let done = unchanged_since(context, &resolved, entry, &before)
            .and_then(|()| context.change(thread, edit, self.target.expect));
        // A refused text is saved to a file.
        let done = done.map_err(|failure| preserve(failure, kept.as_deref()))?;
        context.report_cache_cost(&done, resolved.take.id)
    }
}
