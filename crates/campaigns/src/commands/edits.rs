//! `campaigns edits`.

use clap::Args;
use retake_campaigns::edits::{EditsPlan, controls, walk};
use retake_campaigns::violation::BoxError;

/// Run random edits in one folder by several authors, compared with a reference model.
#[derive(Args, Debug)]
pub(crate) struct Edits {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of steps.
    #[arg(long, default_value_t = 100_000)]
    steps: u64,
    /// Run the controls: inject one fault after another into the model; each must be noticed.
    #[arg(long)]
    control: bool,
}

impl Edits {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("edits: seed {}", self.seed);
        println!(
            "edits: {}",
            if self.control { control(self.seed)? } else { campaign(self.seed, self.steps)? }
        );
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, steps: u64) -> Result<String, BoxError> {
    let walked = walk(EditsPlan { seed, steps, mistake: None })?;
    Ok(format!(
        "{} steps, {} of them moves with {} paths merged or in conflict, {} takes split off or promoted: every file was \
         what the model said",
        walked.steps, walked.moves, walked.merged, walked.splits
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    Ok(format!("{} mistakes, one at a time: each was caught", controls(seed)?))
}
