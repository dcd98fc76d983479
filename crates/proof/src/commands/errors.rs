//! `proof errors`.

use clap::Args;
use retake_proof::faults::{ErrorsPlan, errors, errors_control};
use retake_proof::violation::{Trouble, caught};

/// The real program, with every write-class system call of every command failing.
#[derive(Args, Debug)]
pub(crate) struct Errors {
    /// What the dice start from, where not every point is struck.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// About how many points [default: every one there is].
    #[arg(long)]
    points: Option<u64>,
    /// Take failures for successes instead; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Errors {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("errors: seed {}", self.seed);
        println!("errors: {}", if self.control { controlled()? } else { campaign(self.seed, self.points)? });
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, points: Option<u64>) -> Result<String, Trouble> {
    let injected = errors(ErrorsPlan { seed, points })?;
    Ok(format!("{injected} failing calls: each was harmless, or was reported and changed nothing"))
}

pub(super) fn controlled() -> Result<String, Trouble> {
    let violation = caught("failures taken for successes", errors_control())?;
    Ok(format!("the control was caught: {}", violation.what))
}
