//! What a campaign says when a promise was broken: enough to see it again.

use std::error::Error;

/// Anything that kept a campaign from running, as opposed to what it found.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// A promise that did not hold, and how to see it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("violation in `{campaign}` at step {step} with --seed {seed}: {what}")]
pub struct Violation {
    /// Which campaign found it.
    pub campaign: &'static str,
    /// The seed that leads there.
    pub seed: u64,
    /// The step that leads there.
    pub step: u64,
    /// What was seen, and what should have been.
    pub what: String,
}

/// Why a campaign did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A promise did not hold.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The campaign itself could not go on.
    #[error("the campaign could not go on: {0}")]
    Trouble(#[from] Trouble),
}

impl Failed {
    /// Trouble with the world around a campaign.
    pub fn trouble(error: impl Into<Trouble>) -> Self {
        Self::Trouble(error.into())
    }
}

/// What became of a control: a run in which something is wrong on purpose.
///
/// A checker that finds nothing there finds nothing anywhere.
pub fn caught<T>(name: &str, outcome: Result<T, Failed>) -> Result<Violation, Trouble> {
    match outcome {
        Err(Failed::Violation(violation)) => Ok(violation),
        Err(Failed::Trouble(trouble)) => Err(trouble),
        Ok(_) => Err(format!("the control `{name}` was not caught").into()),
    }
}
