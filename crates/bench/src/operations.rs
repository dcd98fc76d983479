//! Operations on one thread, at every size, compared with the baseline.
//!
//! ```text
//!   for each repetition
//!     for each operation          append, edits, forks, moves: in a realistic order
//!       for each size             100, 1,000, 10,000, 100,000
//!         baseline │ operation    alternating order
//! ```
//!
//! Lookups (such as the entry in the middle) are not measured, and use a second timeline, so that they do not warm the
//! caches of the first.

use std::time::Duration;

use crate::baseline::RawInsert;
use crate::measure::{Samples, format_duration, ratio, timed};
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::{MeasuredThread, empty_log};
use crate::{Outcome, edits, moves};

/// Maximum ratio of the largest to the smallest thread, if the cost must not depend on the size.
const MAX_GROWTH: f64 = 1.3;
/// Maximum number of new bytes for a change of the largest thread.
const MAX_NEW_BYTES: u64 = 16 * 1024;
/// How often the bytes of an operation are counted.
const COUNTED_RUNS: usize = 15;

/// A prepared operation, which returns the number of new bytes.
pub(crate) type PreparedOperation<'subject> = Box<dyn FnOnce() -> Outcome<u64> + 'subject>;

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Maximum ratio to the baseline.
    pub(crate) most: f64,
    /// A further goal.
    pub(crate) rule: Goal,
    /// Looks up the arguments of the operation.
    pub(crate) prepare: fn(&mut MeasuredThread) -> Outcome<PreparedOperation<'_>>,
}

/// A goal besides the ratio to the baseline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The same cost at every size.
    Flat,
    /// Few new bytes at the largest size.
    FewBytes,
}

/// The samples of one operation at one size.
#[derive(Clone, Default)]
struct OperationSamples {
    ours: Samples,
    baseline: Samples,
    new_bytes: Vec<u64>,
    log_bytes: Vec<u64>,
}

impl OperationSamples {
    fn ratio(&self) -> f64 {
        ratio(self.ours.median(), self.baseline.median())
    }
}

pub(crate) fn measure(
    subjects: &mut [MeasuredThread],
    baseline: &mut RawInsert,
    scale: &Scale,
    report: &mut Report,
) -> Outcome<()> {
    let operations: Vec<&Operation> = edits::OPERATIONS.iter().chain(moves::OPERATIONS).collect();
    let mut seen = vec![vec![OperationSamples::default(); subjects.len()]; operations.len()];
    for repetition in 0..scale.repetitions {
        progress("operations", repetition, scale.repetitions);
        for (operation, seen) in operations.iter().zip(&mut seen) {
            for (subject, seen) in subjects.iter_mut().zip(seen) {
                take_turns(operation, subject, baseline, repetition, seen)?;
            }
        }
        for subject in &mut *subjects {
            moves::tidy(subject)?;
        }
    }
    for repetition in 0..COUNTED_RUNS.min(scale.repetitions) {
        progress("bytes", repetition, COUNTED_RUNS);
        for (operation, seen) in operations.iter().zip(&mut seen) {
            for (subject, seen) in subjects.iter_mut().zip(seen) {
                count_bytes(operation, subject, seen)?;
            }
        }
        for subject in &mut *subjects {
            moves::tidy(subject)?;
        }
    }
    report_times(&operations, &seen, scale, report);
    report_bytes(&operations, &seen, scale, report);
    Ok(())
}

fn take_turns(
    operation: &Operation,
    subject: &mut MeasuredThread,
    baseline: &mut RawInsert,
    repetition: usize,
    seen: &mut OperationSamples,
) -> Outcome<()> {
    let ready = (operation.prepare)(subject)?;
    let (took, below): (Duration, Duration);
    if repetition.is_multiple_of(2) {
        below = baseline.insert()?;
        took = timed(ready)?.1;
    } else {
        took = timed(ready)?.1;
        below = baseline.insert()?;
    }
    seen.ours.push(took);
    seen.baseline.push(below);
    Ok(())
}

/// The bytes that one operation appends to an empty log are the bytes it writes.
fn count_bytes(
    operation: &Operation,
    subject: &mut MeasuredThread,
    seen: &mut OperationSamples,
) -> Outcome<()> {
    let folder = subject.folder.clone();
    let ready = (operation.prepare)(subject)?;
    empty_log(&folder)?;
    seen.new_bytes.push(ready()?);
    seen.log_bytes.push(std::fs::metadata(folder.join("retake.db-wal"))?.len());
    Ok(())
}

fn report_times(
    operations: &[&Operation],
    seen: &[Vec<OperationSamples>],
    scale: &Scale,
    report: &mut Report,
) {
    let header = ["operation".to_owned()]
        .into_iter()
        .chain(scale.sizes.iter().map(|size| format!("{size} entries")))
        .chain(["largest : smallest", "fastest tenth", "goal", ""].map(str::to_owned));
    let mut table = Table::new("Operations: median, and how many times the raw insert", header);
    for (operation, seen) in operations.iter().zip(seen) {
        for (size, seen) in scale.sizes.iter().zip(seen) {
            report.figure(Figure::time(operation.name, *size, &seen.ours, Some(&seen.baseline)));
        }
        let cells =
            seen.iter().map(|seen| format!("{} ({:.2}×)", format_duration(seen.ours.median()), seen.ratio()));
        let worst = seen.iter().map(OperationSamples::ratio).fold(0.0, f64::max);
        let spread = spread(seen);
        let flat = operation.rule != Goal::Flat || spread <= MAX_GROWTH;
        let goal = match operation.rule {
            Goal::Flat => format!("≤ {}×, flat within {MAX_GROWTH}×", operation.most),
            Goal::FewBytes => format!("≤ {}×", operation.most),
        };
        let verdict = report.judge(
            operation.name,
            &goal,
            &format!("{worst:.2}×, largest {spread:.2}× the smallest"),
            worst <= operation.most && flat,
        );
        table.row([operation.name.to_owned()].into_iter().chain(cells).chain([
            format!("{spread:.2}×"),
            fastest(seen),
            goal,
            verdict.to_owned(),
        ]));
    }
    let mut all = Samples::default();
    seen.iter().flatten().for_each(|seen| all.push(seen.baseline.median()));
    table.note(format!(
        "The raw insert beside them took {} (median of the medians). The column \"fastest tenth\" compares what a \
         tenth of the measurements stayed below, at the largest size, with the same of the raw insert: on a busy \
         machine it tells what is ours from what is not. It is not what is judged.",
        format_duration(all.median())
    ));
    report.table(table);
}

/// The ratio of the 10th percentiles at the largest size.
fn fastest(seen: &[OperationSamples]) -> String {
    seen.last()
        .map_or_else(String::new, |seen| format!("{:.2}×", ratio(seen.ours.fast(), seen.baseline.fast())))
}

/// The ratio of the largest to the smallest thread.
fn spread(seen: &[OperationSamples]) -> f64 {
    match (seen.first(), seen.last()) {
        (Some(small), Some(large)) => ratio(large.ours.median(), small.ours.median()),
        _ => 1.0,
    }
}

fn report_bytes(
    operations: &[&Operation],
    seen: &[Vec<OperationSamples>],
    scale: &Scale,
    report: &mut Report,
) {
    let header = ["operation".to_owned()]
        .into_iter()
        .chain(scale.sizes.iter().map(|size| format!("{size} entries")))
        .chain(["most".to_owned(), "goal".to_owned(), String::new()]);
    let mut table = Table::new("Bytes: new content, and what was appended to the log (medians)", header);
    for (operation, seen) in operations.iter().zip(seen) {
        let cells = seen.iter().map(|seen| {
            format!("{} / {}", kilobytes(middle(&seen.new_bytes)), kilobytes(middle(&seen.log_bytes)))
        });
        for (size, seen) in scale.sizes.iter().zip(seen) {
            report.figure(Figure::bytes(operation.name, "new content", *size, middle(&seen.new_bytes)));
            report.figure(Figure::bytes(operation.name, "log", *size, middle(&seen.log_bytes)));
        }
        let most = seen.last().and_then(|seen| seen.new_bytes.iter().max().copied()).unwrap_or(0);
        let (goal, verdict) = if operation.rule == Goal::FewBytes {
            let goal = "≤ 16 KB of content".to_owned();
            let name = format!("{}: bytes", operation.name);
            let verdict = report.judge(&name, &goal, &kilobytes(most), most <= MAX_NEW_BYTES);
            (goal, verdict)
        } else {
            (String::new(), "")
        };
        table.row([operation.name.to_owned()].into_iter().chain(cells).chain([
            kilobytes(most),
            goal,
            verdict.to_owned(),
        ]));
    }
    table.note(
        "The goal is judged by new content at the largest size, and by the largest of all repetitions. The log \
         holds whole pages of 4 KB, one for each page of a table or index that was touched."
            .to_owned(),
    );
    report.table(table);
}

fn middle(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

pub(crate) fn kilobytes(bytes: u64) -> String {
    format!("{:.1} KB", bytes as f64 / 1024.0)
}

pub(crate) fn progress(what: &str, done: usize, all: usize) {
    if done.is_multiple_of((all / 10).max(1)) {
        eprintln!("{what}: {done} of {all}");
    }
}
