//! Renders tables to fit the screen.

use anstyle::{Effects, Style};
use pulldown_cmark::Alignment;

use super::RenderOptions;
use super::flow::{StyledText, wrap};
use crate::ui::label::Label;
use crate::ui::width::Align;

#[derive(Default)]
pub(super) struct MarkdownTable {
    alignments: Vec<Align>,
    /// The first row is the heading.
    rows: Vec<Vec<Vec<StyledText>>>,
}

const SEPARATOR: &str = " │ ";
const MIN_COLUMN_WIDTH: usize = 4;

impl MarkdownTable {
    pub(super) fn new(alignments: &[Alignment]) -> Self {
        let align = |alignment: &Alignment| match alignment {
            Alignment::Right => Align::Right,
            _ => Align::Left,
        };
        Self { alignments: alignments.iter().map(align).collect(), rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, cell: Vec<StyledText>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(&self, columns: usize, look: RenderOptions<'_>) -> Vec<Label> {
        let count = self.alignments.len().max(1);
        let room = columns.saturating_sub((count - 1) * SEPARATOR.chars().count());
        if room < count * MIN_COLUMN_WIDTH {
            return self.listed(columns);
        }
        let widths = self.widths(room);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            self.add_row(row, &widths, index == 0, look, &mut lines);
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Label::new().with(look.styles.muted, &rules.join("─┼─")));
            }
        }
        lines
    }

    fn add_row(
        &self,
        row: &[Vec<StyledText>],
        widths: &[usize],
        heading: bool,
        look: RenderOptions<'_>,
        lines: &mut Vec<Label>,
    ) {
        let mut cells: Vec<std::vec::IntoIter<Label>> = Vec::new();
        let mut height = 1;
        for (cell, width) in row.iter().zip(widths) {
            let bold = |(style, text): &StyledText| (*style | Effects::BOLD, text.clone());
            let cell: Vec<StyledText> = if heading { cell.iter().map(bold).collect() } else { cell.clone() };
            let wrapped = wrap(&cell, *width);
            height = height.max(wrapped.len());
            cells.push(wrapped.into_iter());
        }
        for _ in 0..height {
            let mut line = Label::new();
            for (index, cell) in cells.iter_mut().enumerate() {
                if index > 0 {
                    line = line.with(look.styles.muted, SEPARATOR);
                }
                let label = cell.next().unwrap_or_default();
                let is_last = index + 1 == widths.len();
                line = line.join(match self.alignments[index] {
                    // No trailing blanks in the last column.
                    Align::Left if is_last => label,
                    align => label.pad(widths[index], align),
                });
            }
            lines.push(line);
        }
    }

    /// Columns are as wide as their widest cell; if the table is too wide, the widest columns shrink.
    fn widths(&self, room: usize) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (cell, widest) in row.iter().zip(&mut widths) {
                let line: usize = wrap(cell, room).iter().map(Label::width).max().unwrap_or(0);
                *widest = line.max(*widest);
            }
        }
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
        widths
    }

    /// Renders a table with too many columns as a list.
    fn listed(&self, columns: usize) -> Vec<Label> {
        let bar = || (Style::new(), " | ".to_owned());
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut pieces = Vec::new();
            for cell in row {
                pieces.extend(cell.iter().cloned());
                pieces.push(bar());
            }
            pieces.pop();
            lines.extend(wrap(&pieces, columns));
        }
        lines
    }
}
