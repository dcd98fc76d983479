//! `campaigns model`.

use std::fmt::Write;

use clap::Args;
use retake_campaigns::model::fault::ModelFault;
use retake_campaigns::model::{Options, run};
use retake_campaigns::violation::{BoxError, caught};

/// Every control must be caught within this many steps.
const CONTROL_STEPS: u64 = 60_000;

/// Send random requests to the timeline and to a reference model, which must agree.
#[derive(Args, Debug)]
pub(crate) struct Model {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of requests.
    #[arg(long, default_value_t = 100_000)]
    steps: u64,
    /// Run the controls: inject one fault at a time; each must be caught.
    #[arg(long)]
    control: bool,
}

impl Model {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let seed = self.seed;
        println!("model: seed {seed}");
        println!("model: {}", if self.control { controls(seed)? } else { campaign(seed, self.steps)? });
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, steps: u64) -> Result<String, BoxError> {
    let summary = run(Options { seed, steps, fault: None })?;
    Ok(format!(
        "{} steps on {} threads agree ({} refusals, {} stale callers, {} moves there and back); {} versions loaded again",
        summary.steps,
        summary.threads,
        summary.refused,
        summary.conflicts,
        summary.identities,
        summary.versions,
    ))
}

pub(super) fn controls(seed: u64) -> Result<String, BoxError> {
    let mut line = String::from("every mistake was caught:");
    for mutant in ModelFault::ALL {
        let outcome = run(Options { seed, steps: CONTROL_STEPS, fault: Some(mutant) });
        let violation = caught(&format!("{mutant:?}"), outcome)?;
        write!(line, " {mutant:?} at {}", violation.step)?;
    }
    Ok(line)
}
