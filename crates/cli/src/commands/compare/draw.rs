//! Writes a comparison: side by side if there is room, or one take after the other.
//!
//! ```text
//!   wide      ❯ the prompt                       narrow   ❯ the prompt
//!             main           │ retry                      main
//!              2 AI          │  2 AI                        2 AI
//!                One answer. │    Another.                    One answer.
//!                                                         retry …
//! ```

use std::io::{self, Write};

use retake_agent::compare::{AlignedTurn, ComparedTake, Comparison};
use retake_timeline::EntryView;

use super::{Answer, Arguments};
use crate::agent::dollars;
use crate::commands::diff::{WordStyle, write_changes};
use crate::commands::thread::{EntryFormat, entry_lines, role_style};
use crate::context::Context;
use crate::ui::bytes::{count, counted};
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::table::{Column, Table};
use crate::ui::width::Align;

/// The narrowest column for a take.
const MIN_COLUMNS: usize = 44;
/// Between two columns.
const GAP: &str = " │ ";
/// Before the content of an entry.
const INDENT: usize = 3;

pub(super) fn write(
    out: &mut dyn Write,
    context: &Context,
    answer: &Answer,
    arguments: &Arguments,
) -> io::Result<()> {
    let comparison = &answer.comparison;
    let page = Page { context, comparison, full: arguments.full };
    page.statistics(out)?;
    for turn in &comparison.turns {
        page.turn(out, turn)?;
    }
    page.files(out, answer, arguments.patch)
}

struct Page<'a> {
    context: &'a Context,
    comparison: &'a Comparison,
    full: bool,
}

impl Page<'_> {
    fn statistics(&self, out: &mut dyn Write) -> io::Result<()> {
        let styles = &self.context.styles;
        let mut table = Table::new([
            Column::left("TAKE").flexible(),
            Column::right("ENTRIES"),
            Column::right("CALLS"),
            Column::right("TOKENS IN"),
            Column::right("OUT"),
            Column::right("COST"),
            Column::right("TIME"),
            Column::left("MODELS").dispensable(),
        ]);
        for take in &self.comparison.takes {
            let calls = match take.calls.failed {
                0 => count(take.calls.made),
                failed => format!("{}, {} failed", count(take.calls.made), count(failed)),
            };
            let plain = |text: &str| Label::from(text);
            table.row([
                Label::new().with(styles.active, &take.name),
                plain(&count(take.count)),
                plain(&calls),
                plain(&count(take.usage.total_input())),
                plain(&count(take.usage.output_tokens)),
                plain(&cost(take)),
                plain(&format!("{:.1} s", take.millis as f64 / 1e3)),
                Label::new().with(styles.muted, &take.models.join(", ")),
            ]);
        }
        write!(out, "{}", table.render(self.context.screen.columns(), styles.heading))?;
        let muted = styles.muted;
        match self.comparison.shared {
            0 => writeln!(out, "{muted}They share no entries.{muted:#}"),
            shared => {
                let shared = counted(shared, "entry", "entries");
                writeln!(out, "{muted}Before these, all start with the same {shared}.{muted:#}")
            }
        }
    }

    /// A prompt, if it is the same everywhere, and what each take made of it.
    fn turn(&self, out: &mut dyn Write, turn: &AlignedTurn) -> io::Result<()> {
        let cells = (0..self.comparison.takes.len()).map(|take| self.comparison.entries(turn, take));
        let cells: Vec<_> = cells.collect();
        let width = self.context.screen.text_columns();
        let first = cells.iter().flatten().next();
        if let Some((prompt, _)) = first.filter(|_| turn.same_prompt) {
            writeln!(out)?;
            write_lines(out, self.entries(prompt, width))?;
        }
        if let Some((_, answer)) = first.filter(|_| turn.same_answer) {
            let muted = self.context.styles.muted;
            writeln!(out, "{muted}The same answer in all takes:{muted:#}")?;
            return write_lines(out, self.entries(answer, width));
        }
        let columns = self.columns();
        let width = columns.unwrap_or(width);
        let cell = |cell: &Option<(&[EntryView], &[EntryView])>| match cell {
            None => vec![Label::new().with(self.context.styles.muted, "no such turn")],
            Some((prompt, answer)) => {
                let prompt = if turn.same_prompt { Vec::new() } else { self.entries(prompt, width) };
                prompt.into_iter().chain(self.entries(answer, width)).collect()
            }
        };
        let names = self.comparison.takes.iter().map(|take| self.name(take));
        let cells: Vec<Vec<Label>> = names
            .zip(&cells)
            .map(|(name, entries)| std::iter::once(name).chain(cell(entries)).collect())
            .collect();
        writeln!(out)?;
        match columns {
            Some(columns) => self.beside(out, cells, columns),
            None => cells.into_iter().try_for_each(|lines| write_lines(out, lines)),
        }
    }

    fn name(&self, take: &ComparedTake) -> Label {
        Label::new().with(self.context.styles.heading, &take.name)
    }

    /// The width of one column; `None` if the takes do not fit beside each other.
    fn columns(&self) -> Option<usize> {
        let takes = self.comparison.takes.len();
        let gaps = GAP.chars().count() * (takes - 1);
        let columns = self.context.screen.columns()?.saturating_sub(gaps) / takes;
        (columns >= MIN_COLUMNS).then_some(columns)
    }

    fn beside(&self, out: &mut dyn Write, cells: Vec<Vec<Label>>, columns: usize) -> io::Result<()> {
        let muted = self.context.styles.muted;
        let rows = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut cells: Vec<_> = cells.into_iter().map(Vec::into_iter).collect();
        let last = cells.len().saturating_sub(1);
        for _ in 0..rows {
            let mut line = Label::new();
            for (index, cell) in cells.iter_mut().enumerate() {
                let label = cell.next().unwrap_or_default().truncate(columns);
                let is_last = index == last;
                line =
                    line.join(if is_last { label } else { label.pad(columns, Align::Left).with(muted, GAP) });
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Entries: for each, its number and role, and its content in full.
    fn entries(&self, entries: &[EntryView], width: usize) -> Vec<Label> {
        let styles = &self.context.styles;
        let mut lines = Vec::new();
        for view in entries {
            let role = role_style(styles, &view.entry.role);
            let mut header =
                Label::new().with(styles.count, &format!("{:>2} ", view.number)).with(role, &view.entry.role);
            if let Some(model) = &view.entry.model {
                header = header.with(styles.muted, &format!("  {model}"));
            }
            lines.push(header);
            if view.shown.collapsed && !self.full {
                lines.push(indent(Label::new().with(styles.muted, &format!("▸ {}", view.entry.preview()))));
                continue;
            }
            let format = EntryFormat { full: self.full, source: view.shown.source };
            let content = entry_lines(self.context, view, format, width.saturating_sub(INDENT).max(1));
            lines.extend(content.into_iter().map(indent));
        }
        lines
    }

    fn files(&self, out: &mut dyn Write, answer: &Answer, patch: bool) -> io::Result<()> {
        let styles = &self.context.styles;
        let heading = styles.heading;
        let name = |take: &ComparedTake| sanitize(&take.name, LineBreaks::Fold).into_owned();
        let Some((first, others)) = self.comparison.takes.split_first() else { return Ok(()) };
        for (other, changes) in others.iter().zip(&answer.files) {
            let (one, other) = (name(first), name(other));
            writeln!(out, "\n{heading}Files, from {one} to {other}{heading:#}")?;
            match changes {
                None => writeln!(out, "The files of one of them are unknown.")?,
                Some(changes) if changes.files.is_empty() => writeln!(out, "The files are identical.")?,
                Some(changes) => {
                    write_changes(
                        out,
                        self.context,
                        changes,
                        patch.then_some(WordStyle::Highlighted),
                        styles,
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn cost(take: &ComparedTake) -> String {
    match take.micro_dollars {
        Some(0) => "nothing".to_owned(),
        Some(cost) => dollars(cost),
        None => "unknown".to_owned(),
    }
}

fn indent(label: Label) -> Label {
    if label.is_empty() { label } else { Label::from(" ".repeat(INDENT).as_str()).join(label) }
}

fn write_lines(out: &mut dyn Write, lines: Vec<Label>) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
}
