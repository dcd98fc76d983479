//! `retake settings set`

use std::path::PathBuf;

use clap::Args;
use retake_model::operation::Version;
use retake_timeline::Command;

use super::known;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::ui::editor::EditOutcome;
use crate::ui::input::{Source, Stdin};

/// Set one or more settings.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake settings set temperature 0.7
  retake settings set provider anthropic model opus       two settings in one operation
  retake settings set project_system_prompt               in your editor
  retake settings set project_system_prompt --file prompt.md")]
pub(crate) struct Arguments {
    /// Names, each followed by a value. A single name takes its value from --file, a pipe, or the editor.
    #[arg(required = true, value_names = ["NAME", "VALUE"], num_args = 1.., allow_negative_numbers = true)]
    values: Vec<String>,
    /// Read the value from a file; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?.summary;
        let mut expect = self.target.expect;
        let mut by_hand = None;
        let values = match self.values.as_slice() {
            [name] => {
                let name = known(name)?;
                let before = reader.settings(thread.id).effective()?.get(name).unwrap_or_default();
                drop(reader);
                let (value, seen) = read_value(self.file, before, thread.version)?;
                expect = expect.or(seen);
                by_hand = seen.map(|_| value.clone());
                vec![(name.to_owned(), value)]
            }
            _ if self.file.is_some() => {
                let message = "--file sets one setting; pass only its name";
                return Err(Failure::new(Code::Usage, message));
            }
            values => {
                drop(reader);
                pairs(values)?
            }
        };
        let set = Command::Set { values };
        let done = context.change_preserving(thread.id, set, expect, by_hand.as_deref())?;
        context.report_done(&done)
    }
}

fn pairs(values: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let (pairs, rest) = values.as_chunks::<2>();
    if let [name] = rest {
        let message = format!("{name:?} has no value; write NAME VALUE pairs");
        return Err(Failure::new(Code::Usage, message));
    }
    pairs.iter().map(|[name, value]| Ok((known(name)?.to_owned(), value.clone()))).collect()
}

/// The value, and the version it was based on if it was written in an editor.
fn read_value(
    file: Option<PathBuf>,
    before: String,
    version: Version,
) -> Result<(String, Option<Version>), Failure> {
    let source = Source::choose(None, file, Stdin::detect(), &before)?;
    let seen = matches!(source, Source::Editor { .. }).then_some(version);
    let value = match source.read(std::io::stdin(), &environment)? {
        // Editors and pipes add a final line break.
        EditOutcome::Changed(text) => text.strip_suffix('\n').unwrap_or(&text).to_owned(),
        EditOutcome::Unchanged => before,
    };
    Ok((value, seen))
}
