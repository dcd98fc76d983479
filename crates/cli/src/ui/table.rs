//! Tables aligned by display width.
//!
//! Columns are as wide as their widest cell. If the table is too wide, flexible columns shrink, widest first; then
//! dispensable columns are dropped; then lines are cut.

use std::fmt::Write;

use anstyle::Style;

use super::label::Label;
use super::width::Align;

const GAP: usize = 2;
/// The minimum width of a flexible column.
const MIN_FLEXIBLE_WIDTH: usize = 8;
/// Dispensable columns are dropped before a flexible one gets narrower than this.
const COMFORTABLE_WIDTH: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Column {
    heading: Label,
    align: Align,
    stretch: Stretch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    Fixed,
    Flexible,
    /// Shown completely or not at all.
    Dispensable,
}

impl Column {
    /// A left-aligned column.
    pub(crate) fn left(heading: &str) -> Self {
        Self { heading: heading.into(), align: Align::Left, stretch: Stretch::Fixed }
    }

    /// A right-aligned column.
    pub(crate) fn right(heading: &str) -> Self {
        Self { align: Align::Right, ..Self::left(heading) }
    }

    /// The column may shrink on a narrow screen.
    #[must_use]
    pub(crate) fn flexible(self) -> Self {
        Self { stretch: Stretch::Flexible, ..self }
    }

    /// The column may be dropped on a narrow screen.
    #[must_use]
    pub(crate) fn dispensable(self) -> Self {
        Self { stretch: Stretch::Dispensable, ..self }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[Label; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [Label; N]) {
        self.rows.push(cells);
    }

    /// Renders the table within `columns`, if there is a limit. Omits the heading line if no column has a heading.
    pub(crate) fn render(self, columns: Option<usize>, heading: Style) -> String {
        let widths = self.widths(columns);
        let aligns = self.columns.each_ref().map(|column| column.align);
        let headings = self.columns.map(|column| column.heading);
        let mut text = String::new();
        if headings.iter().any(|heading| heading.width() > 0) {
            let styled = headings.map(|label| Label::new().with(heading, &label.text()));
            write_row(&mut text, styled, widths, aligns, columns);
        }
        for row in self.rows {
            write_row(&mut text, row, widths, aligns, columns);
        }
        text
    }

    /// The width of each column; `None` for dropped ones.
    fn widths(&self, limit: Option<usize>) -> [Option<usize>; N] {
        let mut widths = self.columns.each_ref().map(|column| Some(column.heading.width()));
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(Some(cell.width()));
            }
        }
        let Some(limit) = limit else { return widths };
        let is = |index: usize, stretch| self.columns[index].stretch == stretch;
        let excess = |widths: &[Option<usize>; N]| {
            let shown = widths.iter().flatten().count();
            let gaps = GAP * shown.saturating_sub(1);
            (widths.iter().flatten().sum::<usize>() + gaps).saturating_sub(limit)
        };
        // Flexible columns shrink first, so no column is dropped needlessly.
        let spare = |widths: &[Option<usize>; N]| -> usize {
            let flexible = (0..N).filter(|&index| is(index, Stretch::Flexible));
            flexible
                .filter_map(|index| widths[index])
                .map(|width| width.saturating_sub(COMFORTABLE_WIDTH))
                .sum()
        };
        for index in (0..N).filter(|&index| is(index, Stretch::Dispensable)) {
            if excess(&widths) > spare(&widths) {
                widths[index] = None;
            }
        }
        for _ in 0..excess(&widths) {
            let widest = (0..N)
                .filter(|&index| is(index, Stretch::Flexible) && widths[index] > Some(MIN_FLEXIBLE_WIDTH))
                .max_by_key(|&index| widths[index]);
            let Some(widest) = widest else { break };
            widths[widest] = widths[widest].map(|width| width - 1);
        }
        widths
    }
}

fn write_row<const N: usize>(
    text: &mut String,
    cells: [Label; N],
    widths: [Option<usize>; N],
    aligns: [Align; N],
    limit: Option<usize>,
) {
    let mut line = Label::new();
    for (index, cell) in cells.into_iter().enumerate() {
        let Some(width) = widths[index] else { continue };
        if !line.is_empty() {
            line = line.plain(&" ".repeat(GAP));
        }
        let cell = cell.truncate(width);
        // No trailing blanks after the last column.
        let last = index + 1 == N && aligns[index] == Align::Left;
        line = line.join(if last { cell } else { cell.pad(width, aligns[index]) });
    }
    if let Some(limit) = limit {
        line = line.truncate(limit);
    }
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Table<3> {
        let mut table =
            Table::new([Column::left("id"), Column::left("title").flexible(), Column::right("entries")]);
        table.row(["k7m2".into(), "Fix the parser of dates".into(), "12".into()]);
        table.row(["p0q".into(), "日本語のスレッド".into(), "1,200".into()]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let wanted = "\
id    title                    entries
k7m2  Fix the parser of dates       12
p0q   日本語のスレッド           1,200
";
        assert_eq!(threads().render(None, Style::new()), wanted);
        assert_eq!(threads().render(Some(38), Style::new()), wanted);
    }

    #[test]
    fn the_flexible_column_shrinks() {
        let wanted = "\
id    title       entries
k7m2  Fix the p…       12
p0q   日本語の…     1,200
";
        assert_eq!(threads().render(Some(25), Style::new()), wanted);
    }

    #[test]
    fn a_screen_too_narrow_cuts_lines() {
        for columns in 0..23 {
            for line in threads().render(Some(columns), Style::new()).lines() {
                assert!(crate::ui::width::width(line) <= columns, "{line:?} at {columns}");
            }
        }
    }

    #[test]
    fn headings_are_styled_and_may_be_absent() {
        let mut table = Table::new([Column::left(""), Column::left("")]);
        table.row(["a".into(), "b".into()]);
        assert_eq!(table.render(None, Style::new().bold()), "a  b\n");
        let table = Table::new([Column::left("x")]);
        assert_eq!(table.render(None, Style::new().bold()), "\u{1b}[1mx\u{1b}[0m\n");
    }
}
