//! `proof crowd` and `proof restless`.

use clap::Args;
use retake_proof::crowd::{CrowdPlan, Killed, crowd};
use retake_proof::restless::{Replacing, restless};
use retake_proof::violation::{Trouble, caught};

/// Two processes on one folder, each with a thread of its own, some killed at random.
#[derive(Args, Debug)]
pub(crate) struct Crowd {
    /// What the dice start from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many commands each runs.
    #[arg(long, default_value_t = 500)]
    commands: u64,
    /// Take killed commands for acknowledged ones instead; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Crowd {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("crowd: seed {}", self.seed);
        let plan = CrowdPlan { seed: self.seed, commands: self.commands, killed: Killed::Unknown };
        if self.control {
            let violation =
                caught("kills taken for answers", crowd(CrowdPlan { killed: Killed::Done, ..plan }))?;
            println!("crowd: the control was caught: {}", violation.what);
            return Ok(());
        }
        let told = crowd(plan)?;
        let changes: usize = told.iter().map(|told| told.changes.len()).sum();
        let killed: usize = told.iter().map(|told| told.killed.len()).sum();
        let moves: u64 = told.iter().map(|told| told.moves).sum();
        println!(
            "crowd: {changes} changes and {moves} moves were acknowledged, {killed} changes were killed: nothing \
             acknowledged was lost, and the files are as the store says"
        );
        Ok(())
    }
}

/// A folder whose files are rewritten, replaced and removed while they are recorded and moved.
#[derive(Args, Debug)]
pub(crate) struct Restless {
    /// How many rounds of record, undo and redo.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Replace files in place instead; a half of one must be seen.
    #[arg(long)]
    control: bool,
}

impl Restless {
    pub(super) fn run(self) -> Result<(), Trouble> {
        if self.control {
            let violation = caught("replaced in place", restless(self.rounds, Replacing::InPlace))?;
            println!("restless: the control was caught: {}", violation.what);
            return Ok(());
        }
        println!("restless: {:?}: nobody's work was touched", restless(self.rounds, Replacing::ByRename)?);
        Ok(())
    }
}
