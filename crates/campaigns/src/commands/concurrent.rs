//! `campaigns concurrent-processes` and `campaigns concurrent-writers`.

use clap::Args;
use retake_campaigns::concurrent_processes::{ConcurrentPlan, KilledCommand, concurrent_processes};
use retake_campaigns::concurrent_writers::{ReplaceMethod, concurrent_writers};
use retake_campaigns::violation::{BoxError, caught};

/// Run two processes on one folder, each with its own thread, and kill some at random.
#[derive(Args, Debug)]
pub(crate) struct ConcurrentProcesses {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of commands per process.
    #[arg(long, default_value_t = 500)]
    commands: u64,
    /// Run the control: count killed commands as acknowledged; this must be caught.
    #[arg(long)]
    control: bool,
}

impl ConcurrentProcesses {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("concurrent-processes: seed {}", self.seed);
        let plan =
            ConcurrentPlan { seed: self.seed, commands: self.commands, killed: KilledCommand::Unknown };
        if self.control {
            let violation = caught(
                "kills taken for answers",
                concurrent_processes(ConcurrentPlan { killed: KilledCommand::Done, ..plan }),
            )?;
            println!("concurrent-processes: the control was caught: {}", violation.what);
            return Ok(());
        }
        let reports = concurrent_processes(plan)?;
        let changes: usize = reports.iter().map(|report| report.changes.len()).sum();
        let killed: usize = reports.iter().map(|report| report.killed.len()).sum();
        let moves: u64 = reports.iter().map(|report| report.moves).sum();
        let entries: usize = reports.iter().map(|report| report.entries.len()).sum();
        println!(
            "concurrent-processes: {changes} changes, {moves} moves and {entries} entries were acknowledged, {killed} changes were killed: nothing \
             acknowledged was lost, and the files are as the store says"
        );
        Ok(())
    }
}

/// Record and move files while other writers change the same folder.
#[derive(Args, Debug)]
pub(crate) struct ConcurrentWriters {
    /// Number of rounds of record, undo and redo.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Run the control: replace files in place; torn reads must be detected.
    #[arg(long)]
    control: bool,
}

impl ConcurrentWriters {
    pub(super) fn run(self) -> Result<(), BoxError> {
        if self.control {
            let violation =
                caught("replaced in place", concurrent_writers(self.rounds, ReplaceMethod::InPlace))?;
            println!("concurrent-writers: the control was caught: {}", violation.what);
            return Ok(());
        }
        println!(
            "concurrent-writers: {:?}: no foreign change was touched",
            concurrent_writers(self.rounds, ReplaceMethod::ByRename)?
        );
        Ok(())
    }
}
