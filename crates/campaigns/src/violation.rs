//! The report of a broken guarantee, with the data to reproduce it.

use std::error::Error;

/// An error of the campaign itself.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A broken guarantee, and how to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("violation in `{campaign}` at step {step} with --seed {seed}: {what}")]
pub struct Violation {
    /// The campaign that found it.
    pub campaign: &'static str,
    /// Its seed.
    pub seed: u64,
    /// Its step.
    pub step: u64,
    /// The observed and the expected behaviour.
    pub what: String,
}

/// Why a campaign failed.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A broken guarantee.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An error of the campaign itself.
    #[error("the campaign could not continue: {0}")]
    Trouble(#[from] BoxError),
}

impl CampaignError {
    /// Wraps an error of the campaign itself.
    pub fn trouble(error: impl Into<BoxError>) -> Self {
        Self::Trouble(error.into())
    }
}

/// The result of a control: a run with an injected fault.
///
/// A check that finds nothing there finds nothing anywhere.
pub fn caught<T>(name: &str, outcome: Result<T, CampaignError>) -> Result<Violation, BoxError> {
    match outcome {
        Err(CampaignError::Violation(violation)) => Ok(violation),
        Err(CampaignError::Trouble(trouble)) => Err(trouble),
        Ok(_) => Err(format!("the control `{name}` was not caught").into()),
    }
}
