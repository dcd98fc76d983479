//! `proof flips`.

use clap::Args;
use retake_proof::flips::{Options, Summary, forged, survey};
use retake_proof::violation::{Trouble, caught};

/// Bytes flipped and cut in the database and its log.
#[derive(Args, Debug)]
pub(crate) struct Flips {
    /// What the dice start from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many times a copy is damaged.
    #[arg(long, default_value_t = 5_000)]
    points: u64,
    /// Compare with a forged store instead; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Flips {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("flips: seed {}", self.seed);
        println!(
            "flips: {}",
            if self.control { control(self.seed)? } else { campaign(self.seed, self.points)? }
        );
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, points: u64) -> Result<String, Trouble> {
    let (summary, first) = survey(Options { seed, points })?;
    let Summary { points, whole, noticed, refused, older, silent } = summary;
    let line = format!(
        "{points} damages: {noticed} noticed ({refused} on opening), {whole} harmless, {older} cut the log back to an earlier moment"
    );
    match first {
        None => Ok(line),
        Some(violation) => {
            let shown: Vec<String> =
                silent.iter().map(|(thing, times)| format!("{thing} {times}×")).collect();
            Err(format!("{line}; SILENT: {}; first: {violation}", shown.join(", ")).into())
        }
    }
}

pub(super) fn control(seed: u64) -> Result<String, Trouble> {
    let violation = caught("forged title", forged(seed))?;
    Ok(format!("the control was caught: {}", violation.what))
}
