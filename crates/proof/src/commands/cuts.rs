//! `campaigns power-cuts`.

use clap::Args;
use retake_proof::cuts::{CutsPlan, Syncs, cut};
use retake_proof::files::Home;
use retake_proof::violation::{Trouble, caught};

/// Cut the power under the real program, on a separate ext4 file system; needs root and loop devices.
#[derive(Args, Debug)]
pub(crate) struct Cuts {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of power cuts.
    #[arg(long = "cuts", default_value_t = 300)]
    count: u64,
    /// Keep the store on another disk, which is not cut.
    #[arg(long)]
    store_elsewhere: bool,
    /// Run the control: syncs do nothing; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Cuts {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("power-cuts: seed {}", self.seed);
        let home = if self.store_elsewhere { Home::Elsewhere } else { Home::Beside };
        let said = if self.control { control() } else { campaign(self.seed, self.count, home) };
        println!("cuts: {}", said?);
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, cuts: u64, home: Home) -> Result<String, Trouble> {
    let done = cut(CutsPlan { seed, cuts, home, syncs: Syncs::Honest })?;
    Ok(format!(
        "{} power cuts, {} of them in the middle of a command and {} just after its answer ({} after a program that syncs nothing): nothing acknowledged \
         was lost, and conversation and files were always at the same operation",
        done.cuts, done.within, done.after, done.unsynced
    ))
}

pub(super) fn control() -> Result<String, Trouble> {
    let plan = CutsPlan { seed: 1, cuts: 200, home: Home::Beside, syncs: Syncs::Lying };
    let violation = caught("lying syncs", cut(plan))?;
    Ok(format!("the control was caught: {}", violation.what))
}
