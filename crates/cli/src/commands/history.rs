//! `retake history`

mod lines;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use clap::Args;
use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::operation::Version;
use retake_store::ThreadRow;
use retake_timeline::{HistoryItem, PendingMove, Reader, TurnName, UndoStatus};
use serde::Serialize;

use self::lines::{Grouping, group};
use crate::arguments::Target;
use crate::context::Context;
use crate::describe;
use crate::failure::Failure;
use crate::ui::label::Label;

const DEFAULT_LIMIT: usize = 50;

/// Show the operations of a thread, newest first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake history
  retake history --before 120 --limit 20
  retake history --all                    every operation on its own line
  retake jump 12                          go to version 12

● is the current state. ↶ was undone (`retake jump` reaches it), ↷ was undone and can be redone. Brackets join the \
operations of one turn, which are undone together, below its number and prompt; `retake turns` lists only those.")]
pub(crate) struct Arguments {
    /// Maximum number of lines [default: 50].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show only operations before this version.
    #[arg(long, value_name = "VERSION")]
    before: Option<u64>,
    /// Show every operation, including each draft change and each undo, on its own line.
    #[arg(short, long)]
    all: bool,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    history: UndoStatus,
    /// Newest first, never grouped.
    operations: Vec<DescribedOperation>,
    /// The value for `--before` to get the next page; `None` on the last page.
    next: Option<Version>,
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

/// An operation with its description.
#[derive(Serialize)]
struct DescribedOperation {
    #[serde(flatten)]
    item: HistoryItem,
    description: String,
    /// The start of the affected text.
    preview: Option<String>,
    /// The number and prompt of its turn, if a prompt caused it and it is not undone.
    in_turn: Option<TurnName>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let target = Target { thread: self.thread.clone(), ..Target::default() };
        let (row, take) = context.view(&reader, &target)?;
        let limit = match self.limit {
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
            None if self.all => usize::MAX,
            None => DEFAULT_LIMIT,
        };
        // JSON output is never grouped.
        let grouping = if self.all || context.general.json { Grouping::Separate } else { Grouping::Grouped };
        let items = collect(&reader, (row.summary.id, take), self.before, limit, grouping)?;
        let next = items.last().map(|last| last.version).filter(|version| *version > 1);
        let mut operations = Vec::with_capacity(items.len());
        let turns = reader.history(row.summary.id).in_take(take).turns()?;
        let mut names: HashMap<TurnId, Option<TurnName>> = HashMap::new();
        for item in items {
            let in_turn = match names.entry(item.turn) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(turns.name_of(item.turn)?).clone(),
            };
            let description = describe::describe::describe(&reader, &item.kind, item.state)?;
            operations.push(DescribedOperation {
                item,
                description: description.summary,
                preview: description.preview,
                in_turn,
            });
        }
        let history = reader.history(row.summary.id).in_take(take).undo_status()?;
        let pending_moves = context.pending_moves(|thread| thread == row.summary.id)?;
        let answer = Answer { thread: row.summary.id, history, operations, next, pending_moves };
        context.answer(&answer, |out, styles| {
            writeln!(out, "{}\n", heading(context, &row, history))?;
            let table = lines::draw(context, &answer.operations, grouping);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            if let Some(next) = answer.next {
                let muted = styles.muted;
                writeln!(out, "{muted}… older: `retake history --before {next}`{muted:#}")?;
            }
            Ok(())
        })
    }
}

/// Reads enough operations to fill `limit` lines, without cutting a group.
fn collect(
    reader: &Reader<'_>,
    (thread, take): (ThreadId, Option<TakeId>),
    before: Option<Version>,
    limit: usize,
    grouping: Grouping,
) -> Result<Vec<HistoryItem>, Failure> {
    let mut items: Vec<HistoryItem> = Vec::new();
    let mut ask = limit.saturating_add(1);
    loop {
        let from = items.last().map(|last| last.version).or(before);
        let page = reader.history(thread).in_take(take).list(from, ask)?;
        let full = page.len() == ask;
        items.extend(page);
        let lines = group(&items, grouping);
        if lines.len() > limit {
            let end = lines[limit].start;
            items.truncate(end);
            return Ok(items);
        }
        if !full {
            return Ok(items);
        }
        // A group can contain many operations, so each page is larger than the last.
        ask = ask.saturating_mul(2);
    }
}

fn heading(context: &Context, row: &ThreadRow, undo_status: UndoStatus) -> Label {
    let styles = &context.styles;
    let elsewhere = undo_status.position != undo_status.version;
    let at = if elsewhere { format!(", at {}", undo_status.position) } else { String::new() };
    let possible = match (undo_status.can_undo, undo_status.can_redo) {
        (true, true) => ", undo and redo possible",
        (true, false) => ", undo possible",
        (false, true) => ", redo possible",
        (false, false) => "",
    };
    let label = Label::new()
        .with(styles.title, &row.summary.title)
        .with(styles.id, &format!("  {}", row.summary.id.short()))
        .with(styles.muted, &format!("  version {}{at}{possible}", undo_status.version));
    match context.screen.columns() {
        Some(columns) => label.truncate(columns),
        None => label,
    }
}
