//! Measures Retake, compared with other programs and with a raw SQLite insert.
//!
//! ```text
//!   cargo run --release -p retake-bench            the whole table, for 100 to 100,000 entries
//!   cargo run --release -p retake-bench -- --quick a few seconds, as a smoke test
//!   cargo run --release -p retake-bench -- http    the HTTP API under load
//!   … --json NEW.json --compare OLD.json           what became slower or larger since another run
//! ```
//!
//! Every number is compared with a baseline measured at the same time: one durable insert of a 2 KB row into SQLite
//! with the same settings. Goals are ratios to that baseline, so that they hold on fast and slow disks. Sizes and
//! programs are interleaved within each repetition, so that other load affects all alike.

mod baseline;
mod comparison;
mod edits;
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
mod report;
mod scratch;
mod subject;
mod writers;

use std::process::ExitCode;

use clap::Parser;

use crate::comparison::{Comparison, EarlierReport};
use crate::options::{Options, Subcommands};
use crate::report::Report;
use crate::subject::MeasuredThread;

/// Any error stops the benchmark.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let options = Options::parse();
    // An unusable file is reported before a long run, not after it.
    if let Some(error) = options.compare.as_deref().and_then(|file| EarlierReport::read(file).err()) {
        eprintln!("retake-bench: {error}");
        return ExitCode::FAILURE;
    }
    let outcome = match &options.part {
        None => measure_all(&options),
        Some(Subcommands::Http) => measure_http(&options),
        Some(Subcommands::Serve { folder }) => http::serve_ours(folder),
        Some(Subcommands::ServeFloor { folder }) => http::serve_floor(folder),
        Some(Subcommands::Pulse { folder, thread, count }) => http::pulse(folder, *thread, *count),
        Some(Subcommands::LastPage { folder, thread }) => pages::child(folder, *thread),
        Some(Subcommands::Writer { folder, thread, millis }) => writers::child(folder, *thread, *millis),
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
    let scale = options.scale();
    let place = scratch::ScratchDir::choose(options.folder.as_deref())?;
    let mut report = Report::new(place.conditions()?);

    let mut baseline = baseline::RawInsert::open(place.path())?;
    let mut subjects = Vec::new();
    for &size in scale.sizes {
        subjects.push(MeasuredThread::build(place.path(), size)?);
    }
    operations::measure(&mut subjects, &mut baseline, scale, &mut report)?;
    peers::measure(&mut subjects, &mut baseline, place.path(), scale, &mut report)?;
    // A new process finds a store that no other process has open.
    let closed = subjects.into_iter().map(MeasuredThread::close).collect::<Vec<_>>();
    pages::measure(&closed, scale, &mut report)?;
    lists::measure(place.path(), scale, &mut report)?;
    growth::measure(place.path(), scale, &mut report)?;
    writers::measure(place.path(), scale, &mut report)?;

    publish(options, &report)
}

fn measure_http(options: &Options) -> Outcome<()> {
    let place = scratch::ScratchDir::choose(options.folder.as_deref())?;
    let mut report = Report::new(place.conditions()?);
    http::measure(place.path(), options.scale(), &mut report)?;
    publish(options, &report)
}

fn publish(options: &Options, report: &Report) -> Outcome<()> {
    print!("{}", report.text());
    if let Some(earlier) = &options.compare {
        print!("{}", Comparison::of(&EarlierReport::read(earlier)?, report).text());
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(report)?)?;
    }
    Ok(())
}
