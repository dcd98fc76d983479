//! `retake config list`

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use super::{File, Origin, Setting, show};
use crate::config::KEYS;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::label::Label;
use crate::ui::width::wrap;

/// List every key with its value, its source and its purpose.
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
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        let keys = KEYS.iter().map(|key| file.setting(key)).collect::<Result<_, _>>()?;
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, exists: file.text.is_some(), keys };
        context.answer(&answer, |out, styles| {
            for setting in &answer.keys {
                write_setting(out, context, setting)?;
            }
            let muted = styles.muted;
            let missing = if answer.exists { "" } else { " (does not exist yet)" };
            let path = Label::new().plain(&answer.path);
            writeln!(out, "{muted}Configuration file:{muted:#} {path}{muted}{missing}.{muted:#}")
        })
    }
}

/// A key takes two lines, since both values and descriptions can be long.
fn write_setting(out: &mut dyn Write, context: &Context, setting: &Setting) -> io::Result<()> {
    let styles = &context.styles;
    let value = if setting.origin == Origin::Default { anstyle::Style::new() } else { styles.active };
    let from = match (setting.origin, &setting.default) {
        (Origin::Default, _) => "default".to_owned(),
        (origin, Some(default)) => format!("{}, default {}", origin.label(), show(default)),
        (origin, None) => origin.label().to_owned(),
    };
    let line = Label::new()
        .with(styles.command, setting.key)
        .plain(" = ")
        .with(value, &setting.shown())
        .with(styles.muted, &format!("  ({from})"));
    writeln!(out, "{line}")?;
    for line in wrap(setting.purpose, context.screen.text_columns().saturating_sub(4).max(20)) {
        writeln!(out, "    {line}")?;
    }
    writeln!(out)
}
