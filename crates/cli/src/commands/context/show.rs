//! `retake context show`

use std::cmp::Reverse;

use clap::Args;
use retake_agent::{ContextEntry, ContextSize};
use retake_model::entry::ContextPart;
use retake_model::id::{TakeId, ThreadId};
use serde::Serialize;

use crate::agent::AgentFlags;
use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::{count, counted};
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// Show what the next request holds, with tokens.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context show                     the largest entries
  retake context show --all               all entries, in order
  retake context remove 5 --output        then leave out the output of entry 5

The total is that of the next request without its prompt, calibrated with the provider's count for the last answer; parts \
are estimates that are scaled to it.")]
pub(crate) struct Arguments {
    /// Show all entries, in order.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Number of entries, the largest first.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    flags: AgentFlags,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    take: TakeId,
    #[serde(flatten)]
    size: ContextSize,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &(&self.target).into())?;
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        let settings = reader.settings(thread).effective()?;
        drop(reader);
        let size = context.runtime((thread, take), &settings, &self.flags)?.context_size(thread, take)?;
        let answer = Answer { thread, take, size };
        context.answer(&answer, |out, styles| {
            let size = &answer.size;
            let (muted, heading) = (styles.muted, styles.heading);
            let percent = size.tokens.saturating_mul(100).checked_div(size.window).unwrap_or_default();
            writeln!(
                out,
                "{} of {} tokens ({percent}%), {} reserved for the answer of {}",
                count(size.tokens),
                count(size.window),
                count(size.reserved),
                size.model
            )?;
            let how = if size.calibrated {
                "as the provider counted the last answer"
            } else {
                "estimated from bytes"
            };
            writeln!(
                out,
                "{muted}{how}; system prompt {}, tools {}{muted:#}",
                count(size.system),
                count(size.tools)
            )?;
            for file in &size.files {
                writeln!(out, "{muted}with the next prompt: {}, {}{muted:#}", file.path, count(file.tokens))?;
            }
            if size.entries.is_empty() {
                return writeln!(out, "No entries yet.");
            }
            let mut shown: Vec<&ContextEntry> = size.entries.iter().collect();
            if !self.all {
                shown.sort_by_key(|entry| Reverse(entry.tokens + entry.removed));
                shown.truncate(self.limit);
            }
            let rest = size.entries.len() - shown.len();
            writeln!(out)?;
            write!(out, "{}", table(context, &shown).render(context.screen.columns(), heading))?;
            if rest > 0 {
                let rest = counted(rest as u64, "smaller entry", "smaller entries");
                writeln!(out, "{muted}… and {rest}: `retake context show --all`{muted:#}")?;
            }
            Ok(())
        })
    }
}

fn table(context: &Context, entries: &[&ContextEntry]) -> Table<5> {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::right("ENTRY"),
        Column::left("ROLE"),
        Column::right("TOKENS"),
        Column::left("OF THEM").dispensable(),
        Column::left("CONTENT").flexible(),
    ]);
    for entry in entries {
        let mut parts = Vec::new();
        for (part, tokens) in [("output", entry.output), ("pictures", entry.images)] {
            if tokens > 0 {
                parts.push(format!("{} {part}", count(tokens)));
            }
        }
        let removed: Vec<&str> = entry
            .not_in_context
            .iter()
            .map(|part| match part {
                ContextPart::Output => "output",
                ContextPart::Images => "pictures",
            })
            .collect();
        let mut content = Label::new();
        if !removed.is_empty() {
            let removed = format!("without its {} ({})  ", removed.join(" and "), count(entry.removed));
            content = content.with(styles.warning, &removed);
        }
        table.row([
            Label::new().with(styles.id, &entry.number.to_string()),
            Label::new().plain(&entry.role),
            Label::new().plain(&count(entry.tokens)),
            Label::new().with(styles.muted, &parts.join(", ")),
            content.plain(&entry.preview),
        ]);
    }
    table
}
