//! `campaigns processes`, with its workers and readers.

use std::path::PathBuf;

use clap::Args;
use retake_campaigns::processes::{Options, WorkerPlan, read, run, work};
use retake_campaigns::violation::{BoxError, caught};

/// Run eight processes on one store, killing some at random.
#[derive(Args, Debug)]
pub(crate) struct Processes {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of writing processes.
    #[arg(long = "processes", default_value_t = 8)]
    workers: usize,
    /// Number of operations per process.
    #[arg(long, default_value_t = 2_000)]
    operations: u64,
    /// Number of kills.
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Run the control: workers acknowledge before they write; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Processes {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("processes: seed {}", self.seed);
        let options = Options {
            program: std::env::current_exe()?,
            seed: self.seed,
            processes: self.workers,
            operations: self.operations,
            kills: self.kills,
            early: self.control,
        };
        println!("processes: {}", if self.control { control(&options)? } else { campaign(&options)? });
        Ok(())
    }
}

pub(super) fn campaign(options: &Options) -> Result<String, BoxError> {
    let summary = run(options)?;
    Ok(format!(
        "{} operations acknowledged by {} processes exist exactly once ({} kills, {} conflicts, {} found done after a kill, {} reads)",
        summary.acknowledged,
        options.processes,
        summary.kills,
        summary.conflicts,
        summary.in_doubt,
        summary.reads,
    ))
}

pub(super) fn control(options: &Options) -> Result<String, BoxError> {
    let options = Options { early: true, ..options.clone() };
    let violation = caught("early acknowledgement", run(&options))?;
    Ok(format!("the control was caught: {}", violation.what))
}

/// A worker.
#[derive(Args, Debug)]
pub(crate) struct Worker {
    scratch: PathBuf,
    #[arg(long)]
    first: usize,
    #[arg(long)]
    lanes: usize,
    #[arg(long)]
    early: bool,
}

impl Worker {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let lanes = self.first..self.first + self.lanes;
        work(&WorkerPlan { scratch: self.scratch, lanes, early: self.early })
    }
}

/// A reader.
#[derive(Args, Debug)]
pub(crate) struct Reader {
    scratch: PathBuf,
    #[arg(long)]
    seed: u64,
}

impl Reader {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("{}", read(&self.scratch, self.seed)?);
        Ok(())
    }
}
