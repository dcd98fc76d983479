//! `retake entry collapse` and `expand`

use clap::Args;
use retake_model::id::EntryId;
use retake_store::{Shown, StoreError, WriteError, Writing};
use serde::Serialize;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;

/// Show entries as one line each.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry collapse 2 3
  retake entry collapse --all")]
pub(crate) struct CollapseArguments {
    #[command(flatten)]
    which: Which,
}

/// Show entries in full again.
#[derive(Args)]
#[command(after_help = "Example:\n  retake entry expand --all")]
pub(crate) struct ExpandArguments {
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
struct Which {
    /// Which entries: numbers, `last`, or beginnings of ids.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    entries: Vec<String>,
    /// All entries of the take.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct Answer {
    entries: u64,
    collapsed: bool,
}

impl CollapseArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, true, context)
    }
}

impl ExpandArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, false, context)
    }
}

fn set(which: &Which, collapsed: bool, context: &Context) -> Result<(), Failure> {
    let timeline = context.timeline()?;
    let looking = timeline.look()?;
    let meant = context.meant(&looking, &which.target)?;
    let mut entries: Vec<EntryId> = Vec::new();
    if which.all {
        for cell in meant.take.entries.iter(&looking.queries(), 0) {
            entries.push(cell.map_err(retake_timeline::LookError::from)?.entry);
        }
    }
    for text in &which.entries {
        entries.push(looking.find_entry(&meant.take, text)?.1);
    }
    drop(looking);
    let answer = Answer { entries: entries.len() as u64, collapsed };
    let number = meant.thread.number;
    let written = timeline.store().write(move |writing: &Writing<'_>| -> Result<(), StoreError> {
        writing.set_shown(number, &entries, Shown { collapsed, source: false })
    });
    written.map_err(|error| match error {
        WriteError::Refused(error) | WriteError::Store(error) => error,
    })?;
    context.report(&answer, |out, _| {
        let what = if collapsed { "Collapsed" } else { "Expanded" };
        writeln!(out, "{what} {}.", counted(answer.entries, "entry", "entries"))
    })
}
