//! Fails every write-class system call of every command once, in each way that a disk can fail.
//!
//! The command must either succeed, or report the failure and leave the store unchanged.

use std::num::NonZeroU64;

use crate::rng::Rng;
use crate::shim::{CallClass, Faults, InjectedError, Repeat};
use crate::violation::{CampaignError, Violation};

use super::check::ReportedOutcome;
use super::kill::{advance, rehearse};
use super::sandbox::{Run, Sandbox};
use super::script::{SCRIPT, Step};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct ErrorsPlan {
    /// Selects the points, if not all are tested.
    pub seed: u64,
    /// Approximate number of points; `None` for all.
    pub points: Option<u64>,
}

/// A way for a call to fail.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorMode {
    /// One call fails.
    Once(InjectedError),
    /// This call and all later ones fail.
    FromThenOn(InjectedError),
    /// A sync fails.
    Sync,
    /// A rename, a removal or a new folder fails.
    Names,
    /// Opening files fails from this call on.
    OutOfHandles,
    /// A write is short.
    Short,
}

const ERROR_MODES: [ErrorMode; 7] = [
    ErrorMode::Once(InjectedError::DiskFull),
    ErrorMode::FromThenOn(InjectedError::DiskFull),
    ErrorMode::Once(InjectedError::BrokenDisk),
    ErrorMode::FromThenOn(InjectedError::OverQuota),
    ErrorMode::Sync,
    ErrorMode::OutOfHandles,
    ErrorMode::Short,
];

impl ErrorMode {
    /// Configures the fault at a call.
    pub(crate) fn arm(self, faults: Faults, call: u64) -> Faults {
        let once = Repeat::Consecutive(NonZeroU64::MIN);
        match self {
            Self::Once(failure) => faults.fail_at(call, failure, once),
            Self::FromThenOn(failure) => faults.fail_at(call, failure, Repeat::Forever),
            Self::Sync => faults.only(CallClass::Sync).fail_at(call, InjectedError::BrokenDisk, once),
            Self::Names => faults.only(CallClass::Name).fail_at(call, InjectedError::Forbidden, once),
            Self::OutOfHandles => {
                faults.only(CallClass::Open).fail_at(call, InjectedError::OutOfHandles, Repeat::Forever)
            }
            Self::Short => faults.short_at(call),
        }
    }
}

/// Runs the campaign; returns the number of failed calls.
pub fn errors(plan: ErrorsPlan) -> Result<u64, CampaignError> {
    strike(plan, reported)
}

/// The control: every outcome counts as success. It must be caught.
pub fn errors_control() -> Result<u64, CampaignError> {
    strike(ErrorsPlan { seed: 1, points: Some(300) }, |_, _| Ok(ReportedOutcome::Done))
}

fn strike(
    plan: ErrorsPlan,
    reported: impl Fn(&Step, &Run) -> Result<ReportedOutcome, String>,
) -> Result<u64, CampaignError> {
    let sandbox = Sandbox::new(&retake_testing::find_program().map_err(CampaignError::trouble)?)
        .map_err(CampaignError::Trouble)?;
    let mut rng = Rng::new(plan.seed);
    let share = plan.points.map(|points| (6000 / points.max(1)).max(1));
    let mut injected = 0;
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&sandbox, step)?;
        for way in ERROR_MODES {
            let mut call = 1 + share.map_or(0, |share| rng.below(share));
            loop {
                sandbox.restore().map_err(CampaignError::Trouble)?;
                let run = sandbox
                    .run(step.arguments, |faults| way.arm(faults, call))
                    .map_err(CampaignError::Trouble)?;
                if run.report.faults == 0 {
                    break;
                }
                injected += 1;
                let judged = reported(step, &run)
                    .and_then(|reported| expectation.check(&sandbox.store(), step, reported));
                judged.map_err(|broken| {
                    let what = format!(
                        "{:?}, {way:?} at call {call}: {broken}\n{}",
                        step.arguments,
                        run.complaint()
                    );
                    CampaignError::Violation(Violation {
                        campaign: "errors",
                        seed: plan.seed,
                        step: number,
                        what,
                    })
                })?;
                call += share.map_or(1, |share| 1 + rng.below(2 * share));
            }
        }
        advance(&sandbox, step)?;
    }
    Ok(injected)
}

/// The reported outcome; an error if it was unclear.
fn reported(step: &Step, run: &Run) -> Result<ReportedOutcome, String> {
    if run.acknowledged() {
        return Ok(ReportedOutcome::Done);
    }
    let complaint = run.complaint();
    if complaint.contains(r#""outcome":"unknown""#) {
        return Ok(ReportedOutcome::Unsure);
    }
    // 125: `exec` itself failed, and not its command.
    let clear = run.output.status.code().is_some_and(|code| matches!(code, 1..=7 | 125))
        && complaint.contains("\"message\"")
        && !complaint.contains("panicked");
    // A verify that cannot read reports that as its result.
    if clear || step.arguments.first() == Some(&"verify") {
        Ok(ReportedOutcome::Failed)
    } else {
        Err(format!("an unexpected exit ({}): {complaint}", run.output.status))
    }
}
