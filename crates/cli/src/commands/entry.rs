//! `retake entry`: the messages of a take.

mod add;
mod delete;
mod display;
pub(crate) mod edit;
mod insert;
pub(super) mod picture;
mod role;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use retake_model::entry::{EntryVersion, default_role, from_json};
use retake_model::time::Timestamp;
use retake_timeline::NewEntry;

use crate::context::Context;
use crate::failure::{Code, Failure, preserve};
use crate::ui::command::environment;
use crate::ui::editor::EditOutcome;
use crate::ui::input::{Source, Stdin};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Add an entry at the end.
    Add(add::Arguments),
    /// Insert an entry before another.
    Insert(insert::Arguments),
    /// Edit the text of an entry. Role, time, usage and thinking stay the same.
    Edit(edit::Arguments),
    /// Change the role of an entry.
    Role(role::Arguments),
    /// Delete entries. Deleting an entry twice is not an error.
    #[command(visible_alias = "rm")]
    Delete(delete::Arguments),
    /// Show one entry in full.
    Show(show::Arguments),
    /// Collapse entries to one line. Remembered, but not part of history.
    Collapse(display::CollapseArguments),
    /// Show collapsed entries in full again.
    Expand(display::ExpandArguments),
    /// Show entries as rendered Markdown (the default).
    Read(display::ReadArguments),
    /// Show entries as source text. Remembered, but not part of history.
    Source(display::SourceArguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Add(arguments) => arguments.run(context),
        Command::Insert(arguments) => arguments.run(context),
        Command::Edit(arguments) => arguments.run(context),
        Command::Role(arguments) => arguments.run(context),
        Command::Delete(arguments) => arguments.run(context),
        Command::Show(arguments) => arguments.run(context),
        Command::Collapse(arguments) => arguments.run(context),
        Command::Expand(arguments) => arguments.run(context),
        Command::Read(arguments) => arguments.run(context),
        Command::Source(arguments) => arguments.run(context),
    }
}

#[derive(Args)]
pub(crate) struct Content {
    /// Text [default: from --file, a pipe, or the editor].
    text: Option<String>,
    /// Read the text from a file; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Role [default: the first of the thread's roles].
    #[arg(short, long, value_name = "ROLE")]
    role: Option<String>,
    /// A picture (png, jpg, gif, webp) or a PDF document to attach; can be repeated.
    #[arg(long, visible_alias = "image", value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// The content is a JSON object: `role`, `content` or `blocks`, `usage`, `model`, and any other fields,
    /// which are kept.
    #[arg(long)]
    fields: bool,
}

/// A new entry, and its text if the user just typed it in an editor.
pub(crate) struct ComposedEntry {
    entry: NewEntry,
    by_hand: Option<String>,
}

impl Content {
    /// The entry, or `None` if the user left the editor without writing anything.
    fn read(self, roles: &[String], now: Timestamp) -> Result<Option<ComposedEntry>, Failure> {
        let mut pictures = Vec::new();
        for path in &self.attach {
            pictures.push(picture::read(path)?);
        }
        let source = Source::choose(self.text, self.file, Stdin::detect(), "")?;
        let in_editor = matches!(source, Source::Editor { .. });
        let text = match source.read(std::io::stdin(), &environment)? {
            EditOutcome::Changed(text) => text,
            EditOutcome::Unchanged => return Ok(None),
        };
        let role = self.role.as_deref().unwrap_or_else(|| default_role(roles));
        let by_hand = in_editor.then(|| text.clone());
        let version = if self.fields {
            from_json(&text, role, now)
                .map_err(|error| preserve(Failure::new(Code::Usage, error), by_hand.as_deref()))?
        } else {
            EntryVersion::from_text(role, text.strip_suffix('\n').unwrap_or(&text), now)
        };
        Ok(Some(ComposedEntry { entry: picture::attach(version, pictures)?, by_hand }))
    }
}
