//! Fails every write-class system call of commands that move files once, in each way that a disk can fail.
//!
//! The command must either succeed, or report the failure and leave files and conversation unchanged; if it cannot
//! restore everything, the next command finishes the move. Paths that it may not change are skipped and reported.

use crate::faults::{ErrorMode, ErrorsPlan, Run};
use crate::rng::Rng;
use crate::shim::InjectedError;
use crate::violation::{CampaignError, Violation};

use super::check::ReportedOutcome;
use super::kill::{advance, rehearse};
use super::sandbox::{Sandbox, StoreLocation};
use super::script::{CommandKind, SCRIPT, Step};
use super::{retake, scratch};

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorsSummary {
    /// Number of failed calls.
    pub injected: u64,
    /// Number of reported failures.
    pub failed: u64,
}

const ERROR_MODES: [ErrorMode; 8] = [
    ErrorMode::Once(InjectedError::DiskFull),
    ErrorMode::FromThenOn(InjectedError::DiskFull),
    ErrorMode::Once(InjectedError::BrokenDisk),
    ErrorMode::FromThenOn(InjectedError::BrokenDisk),
    ErrorMode::Sync,
    ErrorMode::Names,
    ErrorMode::OutOfHandles,
    ErrorMode::Short,
];

/// Runs the campaign.
pub fn errors(plan: ErrorsPlan) -> Result<ErrorsSummary, CampaignError> {
    strike(plan, reported)
}

/// The control: every outcome counts as success. It must be caught.
pub fn errors_control() -> Result<ErrorsSummary, CampaignError> {
    strike(ErrorsPlan { seed: 1, points: Some(300) }, |_| Ok(ReportedOutcome::Done))
}

/// Denies every call of the removal of a worktree that changes names, once. If the removal is refused, the worktree and
/// all of its files remain, and a second attempt succeeds. Returns the number of such refusals.
pub fn denied_removals() -> Result<u64, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    let mut refused = 0;
    for step in SCRIPT {
        if step.nature != CommandKind::Closes {
            sandbox.prepare(step)?;
            sandbox.run_checked(step.place, step.arguments)?;
            continue;
        }
        let expectation = rehearse(&mut sandbox, step)?;
        for call in 1.. {
            sandbox.restore()?;
            let run = sandbox.run(step.place, step.arguments, |faults| ErrorMode::Names.arm(faults, call))?;
            if run.report.faults == 0 {
                break;
            }
            let judged = reported(&run).and_then(|reported| {
                if run.complaint().contains("is still the worktree") {
                    refused += 1;
                    sandbox.run_checked(step.place, step.arguments).map_err(|error| error.to_string())?;
                    return expectation.check(&sandbox, step, ReportedOutcome::Done);
                }
                // [`errors`] tests the other failures.
                match reported {
                    ReportedOutcome::Done => judge(&sandbox, &expectation, step, &run, reported),
                    _ => Ok(()),
                }
            });
            judged.map_err(|broken| {
                let what = format!("call {call}: {broken}\n{}", run.complaint());
                let campaign = "denied removals";
                CampaignError::Violation(Violation { campaign, seed: 0, step: call, what })
            })?;
        }
        break;
    }
    Ok(refused)
}

fn strike(
    plan: ErrorsPlan,
    reported: impl Fn(&Run) -> Result<ReportedOutcome, String>,
) -> Result<ErrorsSummary, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    let mut rng = Rng::new(plan.seed);
    let share = plan.points.map(|points| (14_000 / points.max(1)).max(1));
    let mut errors = ErrorsSummary::default();
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&mut sandbox, step)?;
        for way in ERROR_MODES {
            let mut call = 1 + share.map_or(0, |share| rng.below(share));
            loop {
                sandbox.restore()?;
                let run = sandbox.run(step.place, step.arguments, |faults| way.arm(faults, call))?;
                if run.report.faults == 0 {
                    break;
                }
                errors.injected += 1;
                let judged = reported(&run).and_then(|reported| {
                    errors.failed += u64::from(reported == ReportedOutcome::Failed);
                    judge(&sandbox, &expectation, step, &run, reported)
                });
                judged.map_err(|broken| {
                    let what = format!(
                        "{:?}, {way:?} at call {call}: {broken}\n{}",
                        step.arguments,
                        run.complaint()
                    );
                    CampaignError::Violation(Violation {
                        campaign: "files errors",
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
    Ok(errors)
}

fn judge(
    sandbox: &Sandbox,
    expectation: &super::check::Expectation,
    step: &Step,
    run: &Run,
    reported: ReportedOutcome,
) -> Result<(), String> {
    let fail = |trouble: crate::violation::BoxError| trouble.to_string();
    if reported == ReportedOutcome::Done && step.nature != CommandKind::Runs && leaves_something(run) {
        // The answer lists skipped paths; conversation and files must agree on them.
        return expectation.check_left(sandbox, step);
    }
    if reported == ReportedOutcome::Failed && step.nature == CommandKind::Whole {
        let sight = super::check::WorldState::of(sandbox).map_err(fail)?;
        if !sight.store_state.moving && sight.folders != expectation.files {
            return Err("it failed, and neither restored the files nor stored an intent".to_owned());
        }
    }
    expectation.check(sandbox, step, reported)
}

/// Whether the answer lists skipped paths.
fn leaves_something(run: &Run) -> bool {
    let answer = String::from_utf8_lossy(&run.output.stdout);
    answer.contains(r#""outcome":"skipped""#) || answer.contains(r#""outcome":"kept""#)
}

/// The reported outcome; an error if it was unclear.
fn reported(run: &Run) -> Result<ReportedOutcome, String> {
    if run.acknowledged() {
        return Ok(ReportedOutcome::Done);
    }
    let complaint = run.complaint();
    let open = [r#""outcome":"unknown""#, r#""outcome":"unfinished""#];
    if open.iter().any(|outcome| complaint.contains(outcome)) {
        return Ok(ReportedOutcome::Unsure);
    }
    // 125: `exec` itself failed, and not its command.
    let clear = run.output.status.code().is_some_and(|code| matches!(code, 1..=7 | 125))
        && complaint.contains("\"message\"")
        && !complaint.contains("panicked");
    if clear {
        Ok(ReportedOutcome::Failed)
    } else {
        Err(format!("an unexpected exit ({}): {complaint}", run.output.status))
    }
}
