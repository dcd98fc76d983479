//! `campaigns flips`.

use clap::Args;
use retake_campaigns::flips::{Options, Summary, forged, survey};
use retake_campaigns::violation::{BoxError, caught};

/// Flip and cut bytes in the database and its write-ahead log.
#[derive(Args, Debug)]
pub(crate) struct Flips {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of damaged copies.
    #[arg(long, default_value_t = 5_000)]
    points: u64,
    /// Also overwrite pages with other valid pages.
    #[arg(long)]
    misplaced: bool,
    /// Run the control: compare with a forged store; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Flips {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("flips: seed {}", self.seed);
        let options = Options { seed: self.seed, points: self.points, misplaced: self.misplaced };
        println!("flips: {}", if self.control { control(self.seed)? } else { campaign(options)? });
        Ok(())
    }
}

pub(super) fn campaign(options: Options) -> Result<String, BoxError> {
    let (summary, violations) = survey(options)?;
    let Summary { points, whole, noticed, refused, older, unnamed, wrong, absent } = summary;
    let line = format!(
        "{points} damages: {noticed} noticed ({refused} on opening), {whole} harmless, {older} silently truncated to an earlier version, {unnamed} not even named by verify"
    );
    for violation in &violations {
        eprintln!("{violation}");
    }
    if violations.is_empty() {
        return Ok(line);
    }
    Err(format!("{line}; {} SILENT: wrong {wrong:?}, left out {absent:?}", violations.len()).into())
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    let violation = caught("forged title", forged(seed))?;
    Ok(format!("the control was caught: {}", violation.what))
}
