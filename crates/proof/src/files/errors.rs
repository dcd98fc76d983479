//! Fails every write-class system call of commands that move files once, in each way that a disk can fail.
//!
//! The command must either succeed, or report the failure and leave files and conversation unchanged; if it cannot
//! restore everything, the next command finishes the move. Paths that it may not change are skipped and reported.

use crate::dice::Dice;
use crate::faults::{ErrorsPlan, Run, Way};
use crate::shim::Failure;
use crate::violation::{Failed, Violation};

use super::check::Told;
use super::kill::{advance, rehearse};
use super::laboratory::{Home, Laboratory};
use super::script::{Nature, SCRIPT, Step};
use super::{ground, retake};

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Number of failed calls.
    pub injected: u64,
    /// Number of reported failures.
    pub failed: u64,
}

const WAYS: [Way; 8] = [
    Way::Once(Failure::DiskFull),
    Way::FromThenOn(Failure::DiskFull),
    Way::Once(Failure::BrokenDisk),
    Way::FromThenOn(Failure::BrokenDisk),
    Way::Sync,
    Way::Names,
    Way::OutOfHandles,
    Way::Short,
];

/// Runs the campaign.
pub fn errors(plan: ErrorsPlan) -> Result<Errors, Failed> {
    strike(plan, told)
}

/// The control: every outcome counts as success. It must be caught.
pub fn errors_control() -> Result<Errors, Failed> {
    strike(ErrorsPlan { seed: 1, points: Some(300) }, |_| Ok(Told::Done))
}

fn strike(plan: ErrorsPlan, told: impl Fn(&Run) -> Result<Told, String>) -> Result<Errors, Failed> {
    let ground = ground()?;
    let mut laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
    let mut dice = Dice::new(plan.seed);
    let share = plan.points.map(|points| (14_000 / points.max(1)).max(1));
    let mut errors = Errors::default();
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&mut laboratory, step)?;
        for way in WAYS {
            let mut call = 1 + share.map_or(0, |share| dice.below(share));
            loop {
                laboratory.restore()?;
                let run = laboratory.run(step.place, step.arguments, |faults| way.arm(faults, call))?;
                if run.report.faults == 0 {
                    break;
                }
                errors.injected += 1;
                let judged = told(&run).and_then(|told| {
                    errors.failed += u64::from(told == Told::Failed);
                    judge(&laboratory, &expectation, step, &run, told)
                });
                judged.map_err(|broken| {
                    let what = format!(
                        "{:?}, {way:?} at call {call}: {broken}\n{}",
                        step.arguments,
                        run.complaint()
                    );
                    Failed::Violation(Violation {
                        campaign: "files errors",
                        seed: plan.seed,
                        step: number,
                        what,
                    })
                })?;
                call += share.map_or(1, |share| 1 + dice.below(2 * share));
            }
        }
        advance(&laboratory, step)?;
    }
    Ok(errors)
}

fn judge(
    laboratory: &Laboratory,
    expectation: &super::check::Expectation,
    step: &Step,
    run: &Run,
    told: Told,
) -> Result<(), String> {
    let fail = |trouble: crate::violation::Trouble| trouble.to_string();
    if told == Told::Done && step.nature != Nature::Runs && leaves_something(run) {
        // The answer lists skipped paths; conversation and files must agree on them.
        return expectation.check_left(laboratory, step);
    }
    if told == Told::Failed && step.nature == Nature::Whole {
        let sight = super::check::Sight::of(laboratory).map_err(fail)?;
        if !sight.said.moving && sight.folders != expectation.files {
            return Err(
                "it failed, and neither put the files back nor left a note for the next one".to_owned()
            );
        }
    }
    expectation.check(laboratory, step, told)
}

/// Whether the answer lists skipped paths.
fn leaves_something(run: &Run) -> bool {
    let answer = String::from_utf8_lossy(&run.output.stdout);
    answer.contains(r#""outcome":"skipped""#) || answer.contains(r#""outcome":"kept""#)
}

/// The reported outcome; an error if it was unclear.
fn told(run: &Run) -> Result<Told, String> {
    if run.acknowledged() {
        return Ok(Told::Done);
    }
    let complaint = run.complaint();
    let open = [r#""outcome":"unknown""#, r#""outcome":"unfinished""#];
    if open.iter().any(|outcome| complaint.contains(outcome)) {
        return Ok(Told::Unsure);
    }
    let clear = run.output.status.code().is_some_and(|code| (1..=7).contains(&code))
        && complaint.contains("\"message\"")
        && !complaint.contains("panicked");
    if clear { Ok(Told::Failed) } else { Err(format!("an unclear end ({}): {complaint}", run.output.status)) }
}
