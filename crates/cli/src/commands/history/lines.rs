//! Groups operations into lines: continuous typing and runs of undos take one line each; brackets join turns.

use std::ops::Range;

use anstyle::Style;
use retake_model::operation::OperationKind;
use retake_timeline::HistoryItem;

use super::DescribedOperation;
use crate::context::Context;
use crate::describe;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// How to show operations that belong together, such as continuous typing or repeated undos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// As one line.
    Grouped,
    /// As one line each.
    Separate,
}

/// Ranges of items that share a line, newest first.
pub(super) fn group(items: &[HistoryItem], grouping: Grouping) -> Vec<Range<usize>> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match lines.last_mut() {
            Some(line) if grouping == Grouping::Grouped && continues(&items[line.start], item) => {
                line.end = index + 1;
            }
            _ => lines.push(index..index + 1),
        }
    }
    lines
}

/// Whether an item joins the line of the newer item.
fn continues(newer: &HistoryItem, item: &HistoryItem) -> bool {
    use OperationKind::{DraftChanged, Jumped, Redone, Undone};
    match (&newer.kind, &item.kind) {
        // Typing that an undo split stays on separate lines.
        (DraftChanged { .. }, DraftChanged { .. }) => {
            newer.turn == item.turn && newer.undone == item.undone && newer.redoable == item.redoable
        }
        (Undone { .. }, Undone { .. }) | (Redone { .. }, Redone { .. }) | (Jumped { .. }, Jumped { .. }) => {
            true
        }
        _ => false,
    }
}

pub(super) fn draw(context: &Context, operations: &[DescribedOperation], grouping: Grouping) -> Table<4> {
    let mut table = Table::new([
        Column::right("VERSION"),
        Column::left("WHEN"),
        Column::left("WHO"),
        Column::left("WHAT").flexible(),
    ]);
    let items: Vec<HistoryItem> = operations.iter().map(|operation| operation.item.clone()).collect();
    let lines = group(&items, grouping);
    let brackets = brackets(&items, &lines);
    let mut last = None;
    for (line, bracket) in lines.iter().zip(brackets) {
        if let Some(turn) = &operations[line.start].in_turn {
            if last != Some(turn.number) {
                let name = Label::new().with(context.styles.title, &turn.to_string());
                table.row([Label::new(), Label::new(), Label::new(), name]);
            }
            last = Some(turn.number);
        }
        let (newest, oldest) = (&operations[line.start], &operations[line.end - 1]);
        let look = LineStyle::of(context, &newest.item);
        let version = match line.len() {
            1 => newest.item.version.to_string(),
            _ => format!("{}–{}", oldest.item.version, newest.item.version),
        };
        let mut what = Label::new().with(context.styles.muted, bracket).with(look.words, &newest.description);
        if line.len() > 1 && newest.item.kind.is_not_undoable() {
            what = what.with(look.words, &format!(", {} times", line.len()));
        }
        if let Some(preview) = &newest.preview {
            what = what.with(context.styles.muted, &format!("  {preview}"));
        }
        table.row([
            Label::new().with(look.mark_style, look.mark).with(look.version, &format!(" {version}")),
            Label::new().with(context.styles.muted, &context.ago(newest.item.time)),
            Label::new().with(look.who, &describe::actor(&newest.item.actor)),
            what,
        ]);
    }
    table
}

/// The bracket before each line; empty if no turn spans several lines.
fn brackets(items: &[HistoryItem], lines: &[Range<usize>]) -> Vec<&'static str> {
    let turn = |line: usize| lines.get(line).map(|line| items[line.start].turn);
    let same = |line: usize, other: Option<usize>| other.is_some_and(|other| turn(line) == turn(other));
    let joins: Vec<(bool, bool)> =
        (0..lines.len()).map(|line| (same(line, line.checked_sub(1)), same(line, Some(line + 1)))).collect();
    if !joins.iter().any(|(newer, older)| *newer || *older) {
        return vec![""; lines.len()];
    }
    joins
        .into_iter()
        .map(|joined| match joined {
            (false, false) => "  ",
            (false, true) => "╭ ",
            (true, true) => "│ ",
            (true, false) => "╰ ",
        })
        .collect()
}

struct LineStyle {
    mark: &'static str,
    mark_style: Style,
    version: Style,
    who: Style,
    words: Style,
}

impl LineStyle {
    fn of(context: &Context, item: &HistoryItem) -> Self {
        let styles = &context.styles;
        let plain = Style::new();
        let dim = |mark, mark_style| Self {
            mark,
            mark_style,
            version: styles.muted,
            who: styles.muted,
            words: styles.muted,
        };
        if item.current {
            let active = styles.active;
            return Self { mark: "●", mark_style: active, version: active, who: plain, words: active };
        }
        if item.redoable {
            return dim("↷", styles.count);
        }
        if item.undone {
            return dim("↶", styles.muted);
        }
        if let OperationKind::Saved { .. } = item.kind {
            return Self { mark: "⚑", ..dim("", styles.warning) };
        }
        if item.kind.is_not_undoable() {
            return dim(" ", plain);
        }
        Self { mark: " ", mark_style: plain, version: styles.id, who: plain, words: plain }
    }
}
