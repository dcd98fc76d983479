//! `campaigns power-power_cuts`.

use clap::Args;
use retake_campaigns::files::StoreLocation;
use retake_campaigns::power_cuts::{CutsPlan, SyncBehavior, cut};
use retake_campaigns::violation::{BoxError, caught};

/// Cut the power under the real program, on a separate ext4 file system; needs root and loop devices.
#[derive(Args, Debug)]
pub(crate) struct PowerCuts {
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

impl PowerCuts {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("power-cuts: seed {}", self.seed);
        let home = if self.store_elsewhere { StoreLocation::Elsewhere } else { StoreLocation::Beside };
        let result = if self.control { control() } else { campaign(self.seed, self.count, home) };
        println!("cuts: {}", result?);
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, cuts: u64, home: StoreLocation) -> Result<String, BoxError> {
    let done = cut(CutsPlan { seed, cuts, home, syncs: SyncBehavior::Honest })?;
    Ok(format!(
        "{} power cuts, {} of them in the middle of a command and {} just after its answer ({} after a program that syncs nothing): nothing acknowledged \
         was lost, and conversation and files were always at the same operation",
        done.cuts, done.within, done.after, done.unsynced
    ))
}

pub(super) fn control() -> Result<String, BoxError> {
    let plan = CutsPlan { seed: 1, cuts: 200, home: StoreLocation::Beside, syncs: SyncBehavior::Lying };
    let violation = caught("lying syncs", cut(plan))?;
    Ok(format!("the control was caught: {}", violation.what))
}
