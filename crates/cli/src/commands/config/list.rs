//! `retake config list`

use clap::Args;
use serde::Serialize;

use super::{File, Setting};
use crate::config::KEYS;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List every key, its value, where that comes from and what it is for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake config list
  retake config list --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    path: String,
    exists: bool,
    keys: Vec<Setting>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        let keys = KEYS.iter().map(|key| file.setting(key)).collect::<Result<_, _>>()?;
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, exists: file.text.is_some(), keys };
        context.answer(&answer, |out, styles| {
            let mut table = Table::new([
                Column::left("KEY"),
                Column::left("VALUE").flexible(),
                Column::left("FROM"),
                Column::left("DEFAULT").flexible(),
                Column::left("FOR").flexible(),
            ]);
            for setting in &answer.keys {
                let changed = setting.origin != super::Origin::Default;
                let value = if changed { styles.active } else { anstyle::Style::new() };
                let default = setting.default.as_ref().map_or_else(|| "-".to_owned(), super::show);
                table.row([
                    Label::new().with(styles.command, setting.key),
                    Label::new().with(value, &setting.shown()),
                    Label::new().with(styles.muted, setting.origin.words()),
                    Label::new().with(styles.muted, &default),
                    Label::new().plain(setting.purpose),
                ]);
            }
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            let muted = styles.muted;
            let missing = if answer.exists { "" } else { " (not made yet)" };
            let path = Label::new().plain(&answer.path);
            writeln!(out, "\n{muted}The file is{muted:#} {path}{muted}{missing}.{muted:#}")
        })
    }
}
