//! Fails every write-class system call of every command once, in each way that a disk can fail.
//!
//! The command must either succeed, or report the failure and leave the store unchanged.

use std::num::NonZeroU64;

use crate::dice::Dice;
use crate::shim::{Class, Failure, Faults, Times};
use crate::violation::{Failed, Violation};

use super::check::Told;
use super::kill::{advance, rehearse};
use super::laboratory::{Laboratory, Run, program};
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
pub(crate) enum Way {
    /// One call fails.
    Once(Failure),
    /// This call and all later ones fail.
    FromThenOn(Failure),
    /// A sync fails.
    Sync,
    /// A rename, a removal or a new folder fails.
    Names,
    /// Opening files fails from this call on.
    OutOfHandles,
    /// A write is short.
    Short,
}

const WAYS: [Way; 7] = [
    Way::Once(Failure::DiskFull),
    Way::FromThenOn(Failure::DiskFull),
    Way::Once(Failure::BrokenDisk),
    Way::FromThenOn(Failure::OverQuota),
    Way::Sync,
    Way::OutOfHandles,
    Way::Short,
];

impl Way {
    /// Configures the fault at a call.
    pub(crate) fn arm(self, faults: Faults, call: u64) -> Faults {
        let once = Times::Consecutive(NonZeroU64::MIN);
        match self {
            Self::Once(failure) => faults.fail_at(call, failure, once),
            Self::FromThenOn(failure) => faults.fail_at(call, failure, Times::Forever),
            Self::Sync => faults.only(Class::Sync).fail_at(call, Failure::BrokenDisk, once),
            Self::Names => faults.only(Class::Name).fail_at(call, Failure::Forbidden, once),
            Self::OutOfHandles => {
                faults.only(Class::Open).fail_at(call, Failure::OutOfHandles, Times::Forever)
            }
            Self::Short => faults.short_at(call),
        }
    }
}

/// Runs the campaign; returns the number of failed calls.
pub fn errors(plan: ErrorsPlan) -> Result<u64, Failed> {
    strike(plan, told)
}

/// The control: every outcome counts as success. It must be caught.
pub fn errors_control() -> Result<u64, Failed> {
    strike(ErrorsPlan { seed: 1, points: Some(300) }, |_, _| Ok(Told::Done))
}

fn strike(plan: ErrorsPlan, told: impl Fn(&Step, &Run) -> Result<Told, String>) -> Result<u64, Failed> {
    let laboratory = Laboratory::new(&program().map_err(Failed::Trouble)?).map_err(Failed::Trouble)?;
    let mut dice = Dice::new(plan.seed);
    let share = plan.points.map(|points| (6000 / points.max(1)).max(1));
    let mut injected = 0;
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&laboratory, step)?;
        for way in WAYS {
            let mut call = 1 + share.map_or(0, |share| dice.below(share));
            loop {
                laboratory.restore().map_err(Failed::Trouble)?;
                let run = laboratory
                    .run(step.arguments, |faults| way.arm(faults, call))
                    .map_err(Failed::Trouble)?;
                if run.report.faults == 0 {
                    break;
                }
                injected += 1;
                let judged =
                    told(step, &run).and_then(|told| expectation.check(&laboratory.store(), step, told));
                judged.map_err(|broken| {
                    let what = format!(
                        "{:?}, {way:?} at call {call}: {broken}\n{}",
                        step.arguments,
                        run.complaint()
                    );
                    Failed::Violation(Violation { campaign: "errors", seed: plan.seed, step: number, what })
                })?;
                call += share.map_or(1, |share| 1 + dice.below(2 * share));
            }
        }
        advance(&laboratory, step)?;
    }
    Ok(injected)
}

/// The reported outcome; an error if it was unclear.
fn told(step: &Step, run: &Run) -> Result<Told, String> {
    if run.acknowledged() {
        return Ok(Told::Done);
    }
    let complaint = run.complaint();
    if complaint.contains(r#""outcome":"unknown""#) {
        return Ok(Told::Unsure);
    }
    let clear = run.output.status.code().is_some_and(|code| (1..=7).contains(&code))
        && complaint.contains("\"message\"")
        && !complaint.contains("panicked");
    // A verify that cannot read reports that as its result.
    if clear || step.arguments.first() == Some(&"verify") {
        Ok(Told::Failed)
    } else {
        Err(format!("an unclear end ({}): {complaint}", run.output.status))
    }
}
