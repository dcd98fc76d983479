//! `retake entry edit`

use std::path::PathBuf;

use clap::Args;
use retake_model::id::EntryId;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::ui::editor::Edited;
use crate::ui::input::{Source, Stdin};

/// Edit the text of an entry. Role, time, usage and thinking stay the same.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry edit 4                     in your editor
  retake entry edit last \"What I meant is this.\"
  retake entry edit 4 --file corrected.md")]
pub(crate) struct Arguments {
    /// Entry: number, `last` or id prefix.
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
fn unchanged_since(context: &Context, meant: &Meant, entry: EntryId, before: &str) -> Result<(), Failure> {
    let looking = context.timeline()?.look()?;
    let state = looking.state(meant.thread.summary.id)?;
    let take = state.take(&looking.queries(), meant.take.id).map_err(retake_timeline::LookError::from)?;
    let now = match take {
        Some(take) => looking.entry(&take, entry)?.map(|(_, version)| version.editable()),
        None => None,
    };
    match now {
        Some(now) if now != before => Err(Failure::new(
            Code::Conflict,
            "the entry changed while you were editing it; run the command again",
        )),
        // The change itself refuses a deleted entry.
        _ => Ok(()),
    }
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let meant = context.meant(&looking, &self.target)?;
        let (position, entry) = looking.find_entry(&meant.take, &self.entry)?;
        let before = looking.page(meant.thread.summary.id, &meant.take, position..position + 1)?;
        let before = before.first().map(|view| view.entry.editable()).unwrap_or_default();
        drop(looking);
        let source = Source::choose(self.text, self.file, Stdin::detect(), &before)?;
        let in_editor = matches!(source, Source::Editor { .. });
        let text = match source.read(std::io::stdin(), &environment)? {
            Edited::Changed(text) => text,
            Edited::Unchanged => before.clone(),
        };
        // Editors and pipes add a final line break that the entry did not have.
        let text =
            if before.ends_with('\n') { text } else { text.strip_suffix('\n').unwrap_or(&text).to_owned() };
        let thread = meant.thread.summary.id;
        let kept = in_editor.then(|| text.clone());
        let edit = Command::EditEntry { take: meant.take.id, entry, text };
        let done = unchanged_since(context, &meant, entry, &before)
            .and_then(|()| context.change(thread, edit, self.target.expect));
        // A refused text is saved to a file.
        let done = done.map_err(|failure| failure.keeping_if(kept.as_deref()))?;
        context.report_reread(&done, meant.take.id)
    }
}
