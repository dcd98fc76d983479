//! Opens the last page of a thread in a new process, as every command does.
//!
//! This program starts itself again. The whole child process is measured; the child also reports the time between
//! opening and reading, and the number of objects that it read.

use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::object::{ObjectError, Objects, load};
use retake_store::Queries;
use retake_timeline::{Reader, Rules, Timeline};

use crate::Outcome;
use crate::measure::{Samples, format_duration, ratio, timed};
use crate::operations::progress;
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::ClosedThread;

/// Entries per page.
const PAGE_ENTRIES: u64 = 50;
/// Maximum ratio of the largest to the smallest thread.
const MAX_GROWTH: f64 = 1.5;

#[derive(Clone, Default)]
struct PageSamples {
    process: Samples,
    inside: Samples,
    objects: u64,
}

pub(crate) fn measure(threads: &[ClosedThread], scale: &Scale, report: &mut Report) -> Outcome<()> {
    let mut seen = vec![PageSamples::default(); threads.len()];
    let repetitions = scale.repetitions.min(60);
    for repetition in 0..repetitions {
        progress("last pages", repetition, repetitions);
        for (thread, seen) in threads.iter().zip(&mut seen) {
            let (child, took) = timed(|| ask_child(thread))?;
            seen.process.push(took);
            seen.inside.push(child.inside);
            seen.objects = child.objects;
        }
    }
    let mut table = Table::new(
        "The last page (50 entries) in a new process",
        ["entries", "whole process", "open and read", "objects read"],
    );
    for (thread, seen) in threads.iter().zip(&seen) {
        report.figure(Figure::time("last page: process", thread.size, &seen.process, None));
        report.figure(Figure::time("last page: open and read", thread.size, &seen.inside, None));
        table.row([
            thread.size.to_string(),
            format_duration(seen.process.median()),
            format_duration(seen.inside.median()),
            seen.objects.to_string(),
        ]);
    }
    if let (Some(small), Some(large)) = (seen.first(), seen.last()) {
        let process = ratio(large.process.median(), small.process.median());
        let inside = ratio(large.inside.median(), small.inside.median());
        let ratios = format!("process {process:.2}×, open and read {inside:.2}×");
        let verdict = report.judge(
            "last page in a new process",
            "flat within 1.5×",
            &ratios,
            process.max(inside) <= MAX_GROWTH,
        );
        table.note(format!("Largest to smallest: {ratios}; goal: both flat within 1.5×: {verdict}."));
    }
    report.table(table);
    Ok(())
}

struct ChildReport {
    inside: Duration,
    objects: u64,
}

fn ask_child(thread: &ClosedThread) -> Outcome<ChildReport> {
    let output = Command::new(std::env::current_exe()?)
        .arg("last-page")
        .arg(&thread.folder)
        .arg(thread.thread.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(nanos)), Some(Ok(objects))) if output.status.success() => {
            Ok(ChildReport { inside: Duration::from_nanos(nanos), objects })
        }
        _ => Err(format!("the child process printed {text:?}").into()),
    }
}

/// The child process.
pub(crate) fn child(folder: &Path, thread: ThreadId) -> Outcome<()> {
    let start = Instant::now();
    let timeline = Timeline::open(folder, Rules::default())?;
    let reader = timeline.read()?;
    let state = reader.state(thread)?;
    let take = state.active_take(&reader.queries())?;
    let end = take.entries.len();
    let page = reader.entries(thread, &take).page(end.saturating_sub(PAGE_ENTRIES)..end)?;
    if page.len() as u64 != PAGE_ENTRIES.min(end) {
        return Err("the page is not whole".into());
    }
    let took = start.elapsed();
    println!("{} {}", took.as_nanos(), objects_read(&reader, thread)?);
    Ok(())
}

/// Counts the objects in a second pass.
fn objects_read(reader: &Reader<'_>, thread: ThreadId) -> Outcome<u64> {
    let counted = CountingObjects { queries: reader.queries(), reads: Cell::new(1) };
    let take = reader.state(thread)?.active_take(&counted)?;
    let end = take.entries.len();
    for cell in take.entries.page(&counted, end.saturating_sub(PAGE_ENTRIES)..end)? {
        load::<EntryVersion>(&counted, cell.version)?;
    }
    Ok(counted.reads.get())
}

struct CountingObjects<'looking> {
    queries: Queries<'looking>,
    reads: Cell<u64>,
}

impl Objects for CountingObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.reads.set(self.reads.get() + 1);
        self.queries.bytes(kind, id)
    }
}
