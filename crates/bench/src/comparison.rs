//! Compares a report with an earlier one.
//!
//! A figure that was measured beside a baseline is compared as its ratio to the baseline, so that reports of a fast and a
//! slow machine can be compared. Figures of one report only are listed by name.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::Outcome;
use crate::report::{Report, Table};

/// A ratio up to this one is noise.
const NOISE: f64 = 1.15;

/// The figures of a report that `--json` wrote.
#[derive(Debug, Deserialize)]
pub(crate) struct EarlierReport {
    figures: Vec<EarlierFigure>,
}

#[derive(Debug, Deserialize)]
struct EarlierFigure {
    of: String,
    size: u64,
    unit: String,
    value: f64,
    baseline: Option<f64>,
}

impl EarlierReport {
    pub(crate) fn read(file: &Path) -> Outcome<Self> {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| format!("{} is not a report of --json: {error}", file.display()).into())
    }
}

/// The value that is compared: the ratio to the baseline, where there is one.
fn comparable(value: f64, baseline: Option<f64>) -> f64 {
    baseline.filter(|baseline| *baseline > 0.0).map_or(value, |baseline| value / baseline)
}

/// The difference between two reports.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    rows: Vec<Row>,
    only_earlier: Vec<String>,
    only_now: Vec<String>,
}

#[derive(Debug)]
struct Row {
    of: String,
    size: u64,
    unit: String,
    before: f64,
    now: f64,
}

impl Row {
    fn change(&self) -> f64 {
        if self.before > 0.0 { self.now / self.before } else { f64::from(u8::from(self.now <= 0.0)) }
    }

    /// A higher rate is better; everything else is better when it is lower.
    fn verdict(&self) -> &'static str {
        let worse = if self.unit.contains("per second") { 1.0 / self.change() } else { self.change() };
        if worse > NOISE {
            "WORSE"
        } else if worse < 1.0 / NOISE {
            "better"
        } else {
            ""
        }
    }
}

impl Comparison {
    pub(crate) fn of(earlier: &EarlierReport, report: &Report) -> Self {
        let mut known: BTreeMap<(&str, u64), &EarlierFigure> =
            earlier.figures.iter().map(|figure| ((figure.of.as_str(), figure.size), figure)).collect();
        let mut comparison = Self::default();
        for figure in report.figures() {
            let Some(before) = known.remove(&(figure.of.as_str(), figure.size)) else {
                comparison.only_now.push(format!("{} ({})", figure.of, figure.size));
                continue;
            };
            // A ratio and a plain value cannot be compared.
            let both = before.baseline.is_some() && figure.baseline.is_some();
            let value = |value, baseline: Option<f64>| comparable(value, baseline.filter(|_| both));
            comparison.rows.push(Row {
                of: figure.of.clone(),
                size: figure.size,
                unit: if both { "× baseline".to_owned() } else { before.unit.clone() },
                before: value(before.value, before.baseline),
                now: value(figure.value, figure.baseline),
            });
        }
        comparison.only_earlier.extend(known.keys().map(|(of, size)| format!("{of} ({size})")));
        comparison
    }

    /// The comparison as Markdown; rows that became worse come first.
    pub(crate) fn text(&self) -> String {
        let mut table =
            Table::new("Compared with the earlier report", ["figure", "size", "before", "now", "change", ""]);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.verdict() != "WORSE");
        for row in rows {
            let number = |value: f64| format!("{value:.2} {}", row.unit);
            table.row([
                row.of.clone(),
                row.size.to_string(),
                number(row.before),
                number(row.now),
                format!("{:.2}×", row.change()),
                row.verdict().to_owned(),
            ]);
        }
        let worse = self.rows.iter().filter(|row| row.verdict() == "WORSE").count();
        table.note(format!("{worse} of {} figures became worse by more than 15 %.", self.rows.len()));
        for (what, names) in [("earlier", &self.only_earlier), ("new", &self.only_now)] {
            if !names.is_empty() {
                table.note(format!("Only in the {what} report: {}.", names.join(", ")));
            }
        }
        table.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Figure;

    fn compare(before: &str, now: impl IntoIterator<Item = Figure>) -> String {
        let earlier: EarlierReport = serde_json::from_str(before).expect("a report");
        let mut report = Report::new(Vec::new());
        now.into_iter().for_each(|figure| report.figure(figure));
        Comparison::of(&earlier, &report).text()
    }

    #[test]
    fn a_slower_figure_is_reported_first_and_a_faster_machine_is_no_progress() {
        let before = r#"{"figures": [
            {"of": "append", "size": 100, "unit": "µs", "value": 500.0, "baseline": 250.0},
            {"of": "log", "size": 100, "unit": "bytes", "value": 40000.0},
            {"of": "gone", "size": 1, "unit": "µs", "value": 1.0}]}"#;
        let mut append = Figure::plain("append", 100, "µs", 60.0);
        append.baseline = Some(20.0);
        let text = compare(before, [Figure::plain("log", 100, "bytes", 16000.0), append]);
        let (worse, better) = (
            text.find("| append | 100 | 2.00 × baseline | 3.00 × baseline | 1.50× | WORSE |"),
            text.find("| log | 100 | 40000.00 bytes | 16000.00 bytes | 0.40× | better |"),
        );
        assert!(worse.is_some() && worse < better, "{text}");
        assert!(text.contains("1 of 2 figures became worse"), "{text}");
        assert!(text.contains("Only in the earlier report: gone (1)."), "{text}");
    }

    #[test]
    fn a_higher_rate_is_better() {
        let before = r#"{"figures": [{"of": "appends", "size": 1, "unit": "per second", "value": 100.0}]}"#;
        assert!(compare(before, [Figure::plain("appends", 1, "per second", 200.0)]).contains("better"));
        assert!(compare(before, [Figure::plain("appends", 1, "per second", 50.0)]).contains("WORSE"));
    }

    #[test]
    fn a_file_that_is_no_report_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "[]").expect("written");
        let error = EarlierReport::read(file.path()).expect_err("refused").to_string();
        assert!(error.contains("is not a report of --json"), "{error}");
    }
}
