//! Lists and trees of ten thousand items, read from an index without opening a thread.

use std::path::Path;

use retake_model::id::ProjectId;
use retake_store::{DeletedFilter, ThreadFilter};
use retake_timeline::{Caller, Command, NewThread, Reader, Rules, Timeline, Tree};

use crate::Outcome;
use crate::measure::{Samples, format_duration, timed};
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::{fill, new_thread};

/// Maximum duration in milliseconds.
const MAX_MILLIS: u128 = 50;
/// Writers that create the threads and takes, so that many share one sync.
const WRITERS: u64 = 32;
/// The project of the many threads; the many takes are in the other one.
const MANY_THREADS: ProjectId = ProjectId::from_bytes([2; 16]);

pub(crate) fn measure(folder: &Path, scale: &Scale, report: &mut Report) -> Outcome<()> {
    let folder = folder.join("lists");
    eprintln!("making {0} threads, and a thread of {0} takes", scale.listed);
    let timeline = Timeline::open(&folder, Rules::default())?;
    make_threads(&timeline, scale.listed)?;
    let takes_in = make_takes(&timeline, scale.listed)?;
    // Reopens the store, so that caches are not warm from writing.
    drop(timeline);
    let timeline = Timeline::open(&folder, Rules::default())?;

    let filter = ThreadFilter { project: Some(MANY_THREADS), ..ThreadFilter::default() };
    let mut table = Table::new("Lists", ["what", "found", "median", "goal", ""]);
    let mut rows: Vec<(&str, Samples, usize)> = Vec::new();
    let rounds = scale.repetitions.min(30);
    rows.push(repeat("list of threads", &timeline, rounds, |look| Ok(look.threads(&filter)?.len()))?);
    rows.push(repeat("tree of one thread's takes", &timeline, rounds, |look| takes(look, takes_in))?);
    rows.push(repeat("tree of as many threads", &timeline, rounds, |look| takes(look, MANY_THREADS))?);
    for (name, samples, found) in rows {
        if (found as u64) < scale.listed {
            return Err(format!("{name}: only {found} of {} were found", scale.listed).into());
        }
        report.figure(Figure::time(name, scale.listed, &samples, None));
        let passed = samples.median().as_millis() < MAX_MILLIS;
        let verdict = report.judge(name, "under 50 ms", &format_duration(samples.median()), passed);
        table.row([
            name.to_owned(),
            found.to_string(),
            format_duration(samples.median()),
            "under 50 ms".to_owned(),
            verdict.to_owned(),
        ]);
    }
    report.table(table);
    Ok(())
}

fn repeat(
    name: &'static str,
    timeline: &Timeline,
    rounds: usize,
    look: impl Fn(&Reader<'_>) -> Outcome<usize>,
) -> Outcome<(&'static str, Samples, usize)> {
    let mut samples = Samples::default();
    let mut found = 0;
    for _ in 0..rounds {
        let (count, took) = timed(|| look(&timeline.read()?))?;
        samples.push(took);
        found = count;
    }
    Ok((name, samples, found))
}

/// The number of takes in the tree of a project.
fn takes(look: &Reader<'_>, project: ProjectId) -> Outcome<usize> {
    let tree = Tree::of(look, Some(project), DeletedFilter::Hidden)?;
    Ok(tree.threads.iter().map(|thread| thread.all_takes.len()).sum())
}

fn make_threads(timeline: &Timeline, count: u64) -> Outcome<()> {
    in_parallel(count, |number| {
        let new = NewThread::in_project(MANY_THREADS).titled(format!("thread number {number}"));
        timeline.create_thread(new, Caller::human())?;
        Ok(())
    })
}

/// Creates a thread with many takes, each from an entry of the first; returns its project.
fn make_takes(timeline: &Timeline, count: u64) -> Outcome<ProjectId> {
    let thread = new_thread(timeline, "many takes")?;
    fill(timeline, &thread, 100, 0, &mut crate::messages::Messages::new(3))?;
    let from = thread.summary.active.id;
    let reader = timeline.read()?;
    let entries = reader.state(thread.thread)?.active_take(&reader.queries())?.entries;
    let cells = entries.page(&reader.queries(), 0..entries.len())?;
    in_parallel(count - 1, |number| {
        let at = Some(cells[number as usize % cells.len()].entry);
        timeline.change(thread.thread, Command::Branch { from, at, name: None }, Caller::human())?;
        Ok(())
    })?;
    Ok(thread.summary.project)
}

/// Repeats an action from many threads.
fn in_parallel(count: u64, action: impl Fn(u64) -> Outcome<()> + Sync) -> Outcome<()> {
    let action = &action;
    std::thread::scope(|scope| {
        let makers: Vec<_> = (0..WRITERS)
            .map(|maker| scope.spawn(move || (maker..count).step_by(WRITERS as usize).try_for_each(action)))
            .collect();
        makers.into_iter().try_for_each(|maker| maker.join().map_err(|_| "a writer panicked")?)
    })
}
