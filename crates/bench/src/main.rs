//! Measures Retake, compared with other programs and with a raw SQLite insert.
//!
//! ```text
//!   cargo run --release -p retake-bench            the whole table, for 100 to 100,000 entries
//!   cargo run --release -p retake-bench -- --quick a few seconds, as a smoke test
//!   cargo run --release -p retake-bench -- http    the HTTP API under load
//! ```
//!
//! Every number is compared with a baseline measured at the same time: one durable insert of a 2 KB row into SQLite
//! with the same settings. Goals are ratios to that baseline, so that they hold on fast and slow disks. Sizes and
//! programs are interleaved within each repetition, so that other load affects all alike.

mod edits;
mod floor;
mod growth;
mod http;
mod lists;
mod measure;
mod messages;
mod moves;
mod operations;
mod options;
mod pages;
mod peers;
mod place;
mod report;
mod subject;
mod writers;

use std::process::ExitCode;

use clap::Parser;

use crate::options::{Options, Part};
use crate::report::Report;
use crate::subject::Subject;

/// Any error stops the benchmark.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.part {
        None => measure_all(&options),
        Some(Part::Http) => measure_http(&options),
        Some(Part::Serve { folder }) => http::serve_ours(folder),
        Some(Part::ServeFloor { folder }) => http::serve_floor(folder),
        Some(Part::Pulse { folder, thread, count }) => http::pulse(folder, *thread, *count),
        Some(Part::LastPage { folder, thread }) => pages::child(folder, *thread),
        Some(Part::Writer { folder, thread, millis }) => writers::child(folder, *thread, *millis),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retake-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(options: &Options) -> Outcome<()> {
    let extent = options.extent();
    let place = place::Place::choose(options.folder.as_deref())?;
    let mut report = Report::new(place.conditions()?);

    let mut floor = floor::Floor::open(place.path())?;
    let mut subjects = Vec::new();
    for &size in extent.sizes {
        subjects.push(Subject::build(place.path(), size)?);
    }
    operations::measure(&mut subjects, &mut floor, extent, &mut report)?;
    peers::measure(&mut subjects, &mut floor, place.path(), extent, &mut report)?;
    // A new process finds a store that no other process has open.
    let closed = subjects.into_iter().map(Subject::close).collect::<Vec<_>>();
    pages::measure(&closed, extent, &mut report)?;
    lists::measure(place.path(), extent, &mut report)?;
    growth::measure(place.path(), extent, &mut report)?;
    writers::measure(place.path(), extent, &mut report)?;

    publish(options, &report)
}

fn measure_http(options: &Options) -> Outcome<()> {
    let place = place::Place::choose(options.folder.as_deref())?;
    let mut report = Report::new(place.conditions()?);
    http::measure(place.path(), options.extent(), &mut report)?;
    publish(options, &report)
}

fn publish(options: &Options, report: &Report) -> Outcome<()> {
    print!("{}", report.text());
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(report)?)?;
    }
    Ok(())
}
