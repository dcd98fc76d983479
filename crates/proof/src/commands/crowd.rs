//! `campaigns concurrent-processes` and `campaigns concurrent-writers`.

use clap::Args;
use retake_proof::crowd::{CrowdPlan, Killed, crowd};
use retake_proof::restless::{Replacing, restless};
use retake_proof::violation::{Trouble, caught};

/// Run two processes on one folder, each with its own thread, and kill some at random.
#[derive(Args, Debug)]
pub(crate) struct Crowd {
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

impl Crowd {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("concurrent-processes: seed {}", self.seed);
        let plan = CrowdPlan { seed: self.seed, commands: self.commands, killed: Killed::Unknown };
        if self.control {
            let violation =
                caught("kills taken for answers", crowd(CrowdPlan { killed: Killed::Done, ..plan }))?;
            println!("concurrent-processes: the control was caught: {}", violation.what);
            return Ok(());
        }
        let told = crowd(plan)?;
        let changes: usize = told.iter().map(|told| told.changes.len()).sum();
        let killed: usize = told.iter().map(|told| told.killed.len()).sum();
        let moves: u64 = told.iter().map(|told| told.moves).sum();
        println!(
            "concurrent-processes: {changes} changes and {moves} moves were acknowledged, {killed} changes were killed: nothing \
             acknowledged was lost, and the files are as the store says"
        );
        Ok(())
    }
}

/// Record and move files while other writers change the same folder.
#[derive(Args, Debug)]
pub(crate) struct Restless {
    /// Number of rounds of record, undo and redo.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Run the control: replace files in place; torn reads must be detected.
    #[arg(long)]
    control: bool,
}

impl Restless {
    pub(super) fn run(self) -> Result<(), Trouble> {
        if self.control {
            let violation = caught("replaced in place", restless(self.rounds, Replacing::InPlace))?;
            println!("concurrent-writers: the control was caught: {}", violation.what);
            return Ok(());
        }
        println!(
            "concurrent-writers: {:?}: no foreign change was touched",
            restless(self.rounds, Replacing::ByRename)?
        );
        Ok(())
    }
}
