//! `retake draft set`

use std::path::PathBuf;

use clap::Args;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::command::environment;
use crate::ui::editor::EditOutcome;
use crate::ui::input::{Source, Stdin};

/// Set the text of the draft. Changes in quick succession are one undo step.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft set                        in your editor
  retake draft set \"Only the dates, please\"
  retake draft set --file message.md")]
pub(crate) struct Arguments {
    /// Text [default: from --file, a pipe, or the editor].
    text: Option<String>,
    /// Read the text from a file; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let before = &resolved.take.draft;
        let source = Source::choose(self.text, self.file, Stdin::detect(), before)?;
        let in_editor = matches!(source, Source::Editor { .. });
        let in_argument = matches!(source, Source::Argument(_));
        let text = match source.read(std::io::stdin(), &environment)? {
            EditOutcome::Changed(text) if in_argument => text,
            // Editors and pipes add a final line break.
            EditOutcome::Changed(text) => text.strip_suffix('\n').unwrap_or(&text).to_owned(),
            EditOutcome::Unchanged => before.clone(),
        };
        // The thread may have changed while the editor was open.
        let expect = self.target.expect.or(in_editor.then_some(resolved.thread.summary.version));
        let by_hand = in_editor.then(|| text.clone());
        let set = Command::SetDraft { take: resolved.take.id, text };
        super::change(context, &resolved, set, expect, by_hand.as_deref())
    }
}
