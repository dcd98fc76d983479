//! `retake entry collapse`, `expand`, `read` and `source`: how entries are displayed. Not part of history.

use clap::Args;
use retake_model::id::EntryId;
use retake_timeline::{DisplayChange, EntrySelection};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;

/// Collapse entries to one line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry collapse 2 3
  retake entry collapse --all")]
pub(crate) struct CollapseArguments {
    #[command(flatten)]
    which: EntryArguments,
}

/// Show collapsed entries in full again.
#[derive(Args)]
#[command(after_help = "Example:\n  retake entry expand --all")]
pub(crate) struct ExpandArguments {
    #[command(flatten)]
    which: EntryArguments,
}

/// Show entries as rendered Markdown (the default).
#[derive(Args)]
#[command(after_help = "Example:\n  retake entry read --all")]
pub(crate) struct ReadArguments {
    #[command(flatten)]
    which: EntryArguments,
}

/// Show entries as source text.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake entry source 4
  retake entry source --all

To see the source once, use `retake entry show --source` or `retake thread show --source`.")]
pub(crate) struct SourceArguments {
    #[command(flatten)]
    which: EntryArguments,
}

#[derive(Args)]
struct EntryArguments {
    /// Entries: numbers, `last` or id prefixes.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    entries: Vec<String>,
    /// Select all entries of the take.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    target: TakeTarget,
}

/// The display setting to change; others stay.
#[derive(Clone, Copy)]
enum DisplaySetting {
    Collapsed(bool),
    Source(bool),
}

#[derive(Serialize)]
struct Answer {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapsed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<bool>,
}

impl CollapseArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, DisplaySetting::Collapsed(true), context)
    }
}

impl ExpandArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, DisplaySetting::Collapsed(false), context)
    }
}

impl ReadArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, DisplaySetting::Source(false), context)
    }
}

impl SourceArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        set(&self.which, DisplaySetting::Source(true), context)
    }
}

impl DisplaySetting {
    fn display(self) -> DisplayChange {
        match self {
            Self::Collapsed(collapsed) => DisplayChange { collapsed: Some(collapsed), source: None },
            Self::Source(source) => DisplayChange { collapsed: None, source: Some(source) },
        }
    }

    fn describe(self, entries: u64) -> String {
        let entries = counted(entries, "entry", "entries");
        match self {
            Self::Collapsed(true) => format!("Collapsed {entries}."),
            Self::Collapsed(false) => format!("Expanded {entries}."),
            Self::Source(true) => format!("Showing {entries} as source text."),
            Self::Source(false) => format!("Showing {entries} as rendered Markdown."),
        }
    }
}

fn set(which: &EntryArguments, change: DisplaySetting, context: &Context) -> Result<(), Failure> {
    let timeline = context.timeline()?;
    let reader = timeline.read()?;
    let resolved = context.resolve(&reader, &(&which.target).into())?;
    let which = if which.all {
        EntrySelection::AllInTake(Some(resolved.take.id))
    } else {
        let found = which.entries.iter().map(|text| Ok(reader.find().entry(&resolved.take, text)?.1));
        EntrySelection::These(found.collect::<Result<Vec<EntryId>, Failure>>()?)
    };
    drop(reader);
    let DisplayChange { collapsed, source } = change.display();
    let entries = timeline.set_entry_display(resolved.thread.summary.id, which, change.display())?;
    context.report(&Answer { entries, collapsed, source }, |out, _| {
        writeln!(out, "{}", change.describe(entries))
    })
}
