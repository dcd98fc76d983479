//! Tables for people, figures for programs, and a verdict on each goal.

use std::fmt::Write;

use serde::Serialize;

use crate::measure::Samples;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    conditions: Vec<(String, String)>,
    verdicts: Vec<Verdict>,
    figures: Vec<Figure>,
    #[serde(skip)]
    tables: Vec<Table>,
}

#[derive(Debug, Serialize)]
struct Verdict {
    of: String,
    goal: String,
    seen: String,
    passed: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) of: String,
    pub(crate) size: u64,
    unit: &'static str,
    pub(crate) value: f64,
    /// The 10th percentile, without disturbances.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast: Option<f64>,
    /// The 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<f64>,
    /// The baseline measured with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) baseline: Option<f64>,
    /// The 10th percentile of the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_floor: Option<f64>,
}

impl Figure {
    /// The median of durations, in microseconds.
    pub(crate) fn time(of: &str, size: u64, ours: &Samples, baseline: Option<&Samples>) -> Self {
        let micros = |duration: std::time::Duration| duration.as_secs_f64() * 1e6;
        Self {
            of: of.to_owned(),
            size,
            unit: "µs",
            value: micros(ours.median()),
            fast: Some(micros(ours.fast())),
            slow: Some(micros(ours.slow())),
            baseline: baseline.map(|baseline| micros(baseline.median())),
            fast_floor: baseline.map(|baseline| micros(baseline.fast())),
        }
    }

    pub(crate) fn bytes(of: &str, which: &str, size: u64, bytes: u64) -> Self {
        Self::plain(&format!("{of}: {which}"), size, "bytes", bytes as f64)
    }

    pub(crate) fn plain(of: &str, size: u64, unit: &'static str, value: f64) -> Self {
        Self {
            of: of.to_owned(),
            size,
            unit,
            value,
            fast: None,
            slow: None,
            baseline: None,
            fast_floor: None,
        }
    }
}

/// A table, written as Markdown.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(title: &str, header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { title: title.to_owned(), header, rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The table as Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing into memory cannot fail");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n### {}\n", self.title)?;
        writeln!(text, "| {} |", self.header.join(" | "))?;
        writeln!(text, "|{}", "---|".repeat(self.header.len()))?;
        for row in &self.rows {
            writeln!(text, "| {} |", row.join(" | "))?;
        }
        for note in &self.notes {
            writeln!(text, "\n{note}")?;
        }
        Ok(())
    }
}

impl Report {
    pub(crate) fn new(conditions: Vec<(String, String)>) -> Self {
        Self { conditions, verdicts: Vec::new(), figures: Vec::new(), tables: Vec::new() }
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.tables.push(table);
    }

    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    pub(crate) fn figure(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Records whether a goal was met, and returns the verdict as text.
    pub(crate) fn judge(&mut self, of: &str, goal: &str, seen: &str, passed: bool) -> &'static str {
        self.verdicts.push(Verdict {
            of: of.to_owned(),
            goal: goal.to_owned(),
            seen: seen.to_owned(),
            passed,
        });
        if passed { "PASS" } else { "FALLS SHORT" }
    }

    /// The report as Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing into memory cannot fail");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        for (name, value) in &self.conditions {
            writeln!(text, "- {name}: {value}")?;
        }
        for table in &self.tables {
            table.write(text)?;
        }
        let passed = self.verdicts.iter().filter(|verdict| verdict.passed).count();
        writeln!(text, "\n{passed} of {} goals reached.", self.verdicts.len())?;
        for short in self.verdicts.iter().filter(|verdict| !verdict.passed) {
            writeln!(text, "- FALLS SHORT: {}: {} (goal: {})", short.of, short.seen, short.goal)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_goals_are_listed_again_at_the_end() {
        let mut report = Report::new(vec![("disk".to_owned(), "slow".to_owned())]);
        let mut table = Table::new("Things", ["thing", "time"]);
        table.row(["this".to_owned(), "1 µs".to_owned()]);
        report.table(table);
        assert_eq!(report.judge("this", "fast", "fast", true), "PASS");
        assert_eq!(report.judge("that", "fast", "slow", false), "FALLS SHORT");
        let text = report.text();
        assert!(text.contains("| this | 1 µs |"), "{text}");
        assert!(text.contains("1 of 2 goals reached.\n- FALLS SHORT: that: slow (goal: fast)"), "{text}");
    }
}
