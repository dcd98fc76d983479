//! `retake settings list`

use clap::Args;
use retake_model::entry::preview;
use retake_model::id::ThreadId;
use retake_model::settings::{NAMES, Settings};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List all settings.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake settings
  retake settings list -t \"Fix the login\" --json")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    settings: Settings,
    /// Names of the settings that differ from their defaults.
    changed: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.thread.as_deref())?.summary.id;
        let settings = reader.settings(thread).effective()?;
        let answer = Answer { thread, changed: Settings::default().changed(&settings), settings };
        context.answer(&answer, |out, styles| {
            let mut table = Table::new([Column::left("SETTING"), Column::left("VALUE").flexible()]);
            for name in NAMES {
                let value = preview(&answer.settings.get(name).unwrap_or_default());
                let set = answer.changed.iter().any(|changed| changed == name);
                let value = match (set, value.is_empty()) {
                    (true, _) => Label::from(value.as_str()),
                    (false, true) => Label::new().with(styles.muted, "(not set)"),
                    (false, false) => Label::new().with(styles.muted, &format!("{value} (default)")),
                };
                table.row([Label::new().with(styles.id, name), value]);
            }
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))
        })
    }
}
