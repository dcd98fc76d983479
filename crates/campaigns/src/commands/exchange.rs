//! `campaigns exchange`.

use clap::Args;
use retake_campaigns::exchange::{ExchangePlan, controls, exchange};
use retake_campaigns::violation::BoxError;

/// Let two machines exchange a thread while both work on it.
#[derive(Args, Debug)]
pub(crate) struct Exchange {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of steps.
    #[arg(long, default_value_t = 20_000)]
    steps: u64,
    /// Run the controls: inject one fault after another; each must be caught.
    #[arg(long)]
    control: bool,
}

impl Exchange {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("exchange: seed {}", self.seed);
        println!(
            "exchange: {}",
            if self.control { control(self.seed)? } else { campaign(self.seed, self.steps)? }
        );
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, steps: u64) -> Result<String, BoxError> {
    let done = exchange(ExchangePlan { seed, steps, mistake: None })?;
    Ok(format!(
        "{} steps, {} imports continued a thread, {} were refused, {} copies: conversation and files agreed",
        done.steps, done.continued, done.diverged, done.copies
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    Ok(format!("{} faults, one at a time: each was caught", controls(seed)?))
}
