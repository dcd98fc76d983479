//! `campaigns errors`.

use clap::Args;
use retake_campaigns::faults::{ErrorsPlan, errors, errors_control};
use retake_campaigns::violation::{BoxError, caught};

/// Fail every write-class system call of every command of the real program.
#[derive(Args, Debug)]
pub(crate) struct Errors {
    /// Seed for selecting the points, if not all are tested.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Approximate number of points [default: all].
    #[arg(long)]
    points: Option<u64>,
    /// Run the control: treat failures as successes; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Errors {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("errors: seed {}", self.seed);
        println!("errors: {}", if self.control { controlled()? } else { campaign(self.seed, self.points)? });
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let injected = errors(ErrorsPlan { seed, points })?;
    Ok(format!("{injected} failing calls: each was harmless, or was reported and changed nothing"))
}

pub(super) fn controlled() -> Result<String, BoxError> {
    let violation = caught("failures taken for successes", errors_control())?;
    Ok(format!("the control was caught: {}", violation.what))
}
