//! Every write-class system call of every command fails once, in each way that a disk can fail.
//!
//! The command must either not be bothered, or say clearly that it failed and leave the store as it was.

use std::num::NonZeroU64;

use crate::dice::Dice;
use crate::shim::{Class, Failure, Faults, Times};
use crate::violation::{Failed, Violation};

use super::check::Told;
use super::kill::{advance, rehearse};
use super::laboratory::{Laboratory, Run, program};
use super::script::{SCRIPT, Step};

/// How many errors, and which.
#[derive(Clone, Copy, Debug)]
pub struct ErrorsPlan {
    /// Picks the points, if not all of them are wanted.
    pub seed: u64,
    /// About how many points; `None` for every one there is.
    pub points: Option<u64>,
}

/// A way for a call to fail.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// One call.
    Once(Failure),
    /// That call and all after it.
    FromThenOn(Failure),
    /// A sync.
    Sync,
    /// A change of names: a rename, a removal, a new folder.
    Names,
    /// Everything that opens a file, from that call on.
    OutOfHandles,
    /// A write that writes a part.
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
    /// Lets the call fail in that way.
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

/// Lets calls fail; gives how many did.
pub fn errors(plan: ErrorsPlan) -> Result<u64, Failed> {
    strike(plan, told)
}

/// The control: whatever the program says, it is taken for done. It must be caught.
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

/// What the caller was told; an error if that was not clear.
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
    // A verify that cannot read says what it found, which is an answer of its own.
    if clear || step.arguments.first() == Some(&"verify") {
        Ok(Told::Failed)
    } else {
        Err(format!("an unclear end ({}): {complaint}", run.output.status))
    }
}
