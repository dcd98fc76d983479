//! `retake compare`

use std::io::{self, Write};

use clap::Args;
use retake_agent::compare::{ComparedTake, Comparison, compare};
use retake_model::content::ContentId;
use retake_timeline::{Changes, DEFAULT_CONTEXT, Detail, DiffOptions, EntryView, ReadError};
use serde::Serialize;

use super::diff::{WordStyle, write_changes};
use crate::agent::dollars;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{count, counted};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Compare two takes: their messages since they diverged, their cost and their files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake compare main main_take_1
  retake compare main                     with the active take
  retake compare main retry --stat        changed line counts only
  retake take promote retry               then turn the better one into a thread
  retake take switch retry                or continue with it")]
pub(crate) struct Arguments {
    /// First take: name or id prefix.
    one: String,
    /// Second take [default: the active take].
    other: Option<String>,
    /// Show only the number of changed lines per file.
    #[arg(long)]
    stat: bool,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    comparison: Comparison,
    /// File differences from the first take to the second; `None` if the files of either are unknown.
    files: Option<Changes>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.thread.as_deref())?;
        let state = reader.state(thread.summary.id)?;
        let find = |text: Option<&str>| -> Result<_, Failure> {
            let id = match text {
                Some(text) => reader.find().take(&thread, text)?.summary.id,
                None => state.active,
            };
            let take = state.take(&reader.queries(), id).map_err(ReadError::from)?;
            take.ok_or_else(|| Failure::new(Code::NotFound, "the take was deleted"))
        };
        let (one, other) = (find(Some(&self.one))?, find(self.other.as_deref())?);
        if one.id == other.id {
            return Err(Failure::new(Code::Usage, "both names refer to the same take; name another one"));
        }
        let prices = context.prices();
        let mut comparison = compare(&reader, thread.summary.id, [&one, &other], &prices)?;
        // The active take's files are in the folder; recording them picks up hand edits.
        for side in &mut comparison.sides {
            if side.take == state.active && context.worktree_of(thread.summary.id)?.is_none() {
                side.files = Some(
                    context
                        .working_copy_of(thread.summary.id)?
                        .record_changes(thread.summary.id, context.caller(thread.summary.id, None)?)?
                        .snapshot,
                );
            }
        }
        drop(reader);
        let detail = if self.stat { Detail::Counts } else { Detail::Hunks(DEFAULT_CONTEXT) };
        let files = match comparison.sides.each_ref().map(|side| side.files) {
            [Some(one), Some(other)] => Some(changes(context, one, other, detail)?),
            _ => None,
        };
        let answer = Answer { comparison, files };
        context.answer(&answer, |out, styles| {
            let [one, other] = &answer.comparison.sides;
            table(out, styles, &answer.comparison)?;
            for side in [one, other] {
                let heading = styles.heading;
                writeln!(out, "\n{heading}{}{heading:#}", sanitize(&side.name, LineBreaks::Fold))?;
                for view in &side.entries {
                    entry(out, styles, view)?;
                }
            }
            let heading = styles.heading;
            match &answer.files {
                None => writeln!(out, "\nThe files of one take are unknown."),
                Some(files) if files.files.is_empty() => writeln!(out, "\nThe files are identical."),
                Some(files) => {
                    let (one, other) =
                        (sanitize(&one.name, LineBreaks::Fold), sanitize(&other.name, LineBreaks::Fold));
                    writeln!(out, "\n{heading}Files, from {one} to {other}{heading:#}\n")?;
                    let words = (!self.stat).then_some(WordStyle::Highlighted);
                    write_changes(out, context, files, words, styles)
                }
            }
        })
    }
}

fn changes(context: &Context, one: ContentId, other: ContentId, detail: Detail) -> Result<Changes, Failure> {
    let reader = context.timeline()?.read()?;
    Ok(reader.snapshot(one).changes(other, &DiffOptions::all(detail))?)
}

/// Formats one cell of the comparison table.
type CellText<'a> = &'a dyn Fn(&ComparedTake) -> String;

fn table(out: &mut dyn Write, styles: &Styles, comparison: &Comparison) -> io::Result<()> {
    let muted = styles.muted;
    let [one, other] = &comparison.sides;
    match comparison.shared {
        0 => writeln!(out, "{muted}The takes share no entries.{muted:#}\n")?,
        shared => {
            let shared = counted(shared, "entry", "entries");
            writeln!(out, "{muted}Both start with the same {shared}.{muted:#}\n")?;
        }
    }
    let tokens = |side: &ComparedTake| {
        let usage = &side.usage;
        let read = usage.total_input();
        format!("{} read, {} written", count(read), count(usage.output_tokens))
    };
    let cost = |side: &ComparedTake| match side.micro_dollars {
        Some(0) => "nothing".to_owned(),
        Some(cost) => dollars(cost),
        None => "unknown".to_owned(),
    };
    let calls = |side: &ComparedTake| match side.calls.failed {
        0 => count(side.calls.made),
        failed => format!("{} ({} failed)", count(side.calls.made), count(failed)),
    };
    let rows: [(&str, CellText<'_>); 6] = [
        ("entries", &|side| count(side.entries.len() as u64)),
        ("models", &|side| side.models.join(", ")),
        ("tool calls", &calls),
        ("tokens", &tokens),
        ("cost", &cost),
        ("time", &|side| format!("{:.1} s", side.millis as f64 / 1e3)),
    ];
    let (first, second) = (sanitize(&one.name, LineBreaks::Fold), sanitize(&other.name, LineBreaks::Fold));
    let heading = styles.heading;
    writeln!(out, "{:>12}  {heading}{first:<28}{heading:#}  {heading}{second}{heading:#}", "")?;
    for (name, value) in rows {
        let (first, second) = (value(one), value(other));
        let (first, second) = (sanitize(&first, LineBreaks::Fold), sanitize(&second, LineBreaks::Fold));
        writeln!(out, "{muted}{name:>12}{muted:#}  {first:<28}  {second}")?;
    }
    Ok(())
}

fn entry(out: &mut dyn Write, styles: &Styles, view: &EntryView) -> io::Result<()> {
    let (muted, role) = (styles.muted, styles.assistant);
    let name = sanitize(&view.entry.role, LineBreaks::Fold);
    let preview = view.entry.preview();
    let preview = sanitize(&preview, LineBreaks::Fold);
    writeln!(out, "{muted}{:>5}{muted:#} {role}{name:<8}{role:#} {preview}", view.number)
}
