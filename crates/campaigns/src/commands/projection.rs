//! `campaigns projection`.

use clap::Args;
use retake_campaigns::projection::{bind, broken, project, unbound};
use retake_campaigns::violation::{BoxError, caught};
use retake_testing::projection::campaign::Mistake;

/// Project random histories for every provider, and check each request against the provider's rules.
#[derive(Args, Debug)]
pub(crate) struct Projection {
    /// First seed; each history uses the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of histories.
    #[arg(long, default_value_t = 100_000)]
    histories: u64,
    /// Run the control: a naive encoder, which must be caught.
    #[arg(long)]
    control: bool,
}

impl Projection {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("projection: seed {}", self.seed);
        let result = if self.control { control(self.seed)? } else { campaign(self.seed, self.histories)? };
        println!("projection: {result}");
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, histories: u64) -> Result<String, BoxError> {
    let done = project(seed, histories)?;
    let bound = bind(seed, histories)?;
    Ok(format!(
        "{} histories, {} requests: no violation; {} of {} requests that were broken on purpose were caught \
         ({:.3} %); {} conversations with bound thoughts, {} changes, {} requests, {} thoughts: each where it was made",
        done.histories,
        done.requests,
        done.caught,
        done.mutants,
        100.0 * done.caught as f64 / done.mutants.max(1) as f64,
        bound.histories,
        bound.changes,
        bound.requests,
        bound.sent
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    let violation = caught("histories sent as they are", broken(seed))?;
    for mistake in [Mistake::ForgetPrefix, Mistake::LeaveOneOut, Mistake::LeaveAllOut] {
        caught("bound thoughts sent with a mistake", unbound(seed, mistake))?;
    }
    Ok(format!("the control was caught: {}", violation.what))
}
