//! Kills the program at every write-class system call of every command.
//!
//! Four ways: before the call, in the middle of it, and both with a power cut that loses all unsynced data. In
//! addition, one power cut right after each command was acknowledged.
//!
//! In the control, syncs do nothing. A harness that misses the loss then would also miss a forgotten sync in the
//! program.

use crate::dice::Dice;
use crate::shim::{Death, Faults};
use crate::violation::{Failed, Violation};

use super::check::{Expectation, Logs, Told};
use super::laboratory::{Laboratory, Run, program};
use super::script::{SCRIPT, Step};

const DEATHS: [Death; 4] = [Death::Kill, Death::Torn, Death::Cut, Death::TornCut];

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct KillPlan {
    /// Selects the points, if not all are tested.
    pub seed: u64,
    /// Approximate number of points; `None` for all.
    pub points: Option<u64>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// Commands that were tested.
    pub commands: u64,
    /// Number of kills.
    pub kills: u64,
    /// Kills that lost unsynced data.
    pub lossy: u64,
}

/// Kills the program at every point, or at about the given number of points.
pub fn kill(plan: KillPlan) -> Result<Kills, Failed> {
    let laboratory = Laboratory::new(&program().map_err(Failed::Trouble)?).map_err(Failed::Trouble)?;
    let mut dice = Dice::new(plan.seed);
    let mut kills = Kills::default();
    // The approximate total number of points; a smaller plan tests a share of each command's.
    let share = plan.points.map(|points| (5000 / points.max(1)).max(1));
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&laboratory, step)?;
        kills.commands += 1;
        for death in DEATHS {
            let mut call = 1 + share.map_or(0, |share| dice.below(share));
            loop {
                laboratory.restore().map_err(Failed::Trouble)?;
                let run = laboratory
                    .run(step.arguments, |faults| faults.die_at(call, death))
                    .map_err(Failed::Trouble)?;
                if run.report.faults == 0 {
                    break;
                }
                kills.kills += 1;
                kills.lossy += u64::from(run.report.lost > 0);
                judge(
                    &laboratory,
                    &expectation,
                    step,
                    &run,
                    plan.seed,
                    number,
                    &format!("{death:?} at call {call}"),
                )?;
                call += share.map_or(1, |share| 1 + dice.below(2 * share));
            }
        }
        laboratory.restore().map_err(Failed::Trouble)?;
        let run = laboratory.run(step.arguments, Faults::cut_at_exit).map_err(Failed::Trouble)?;
        judge(&laboratory, &expectation, step, &run, plan.seed, number, "power cut after the answer")?;
        advance(&laboratory, step)?;
    }
    Ok(kills)
}

/// The control: syncs do nothing. It must be caught.
pub fn control() -> Result<Kills, Failed> {
    let laboratory = Laboratory::new(&program().map_err(Failed::Trouble)?).map_err(Failed::Trouble)?;
    let mut kills = Kills::default();
    for (number, step) in (1..).zip(SCRIPT).take(6) {
        let expectation = rehearse(&laboratory, step)?;
        laboratory.restore().map_err(Failed::Trouble)?;
        let run = laboratory
            .run(step.arguments, |faults| faults.cut_at_exit().lying_syncs())
            .map_err(Failed::Trouble)?;
        kills.kills += 1;
        judge(&laboratory, &expectation, step, &run, 0, number, "power cut with syncs that lie")?;
        advance(&laboratory, step)?;
    }
    Ok(kills)
}

/// Runs a command once without a fault, for reference, and restores the store.
pub(super) fn rehearse(laboratory: &Laboratory, step: &Step) -> Result<Expectation, Failed> {
    laboratory.keep().map_err(Failed::Trouble)?;
    let before = Logs::read(&laboratory.store()).map_err(Failed::trouble)?;
    advance(laboratory, step)?;
    let after = Logs::read(&laboratory.store()).map_err(Failed::trouble)?;
    // Reading may checkpoint the store; the next run must start from the original files.
    laboratory.restore().map_err(Failed::Trouble)?;
    Ok(Expectation::between(before, &after))
}

/// Runs a command without a fault. It must succeed.
pub(super) fn advance(laboratory: &Laboratory, step: &Step) -> Result<(), Failed> {
    laboratory.restore().map_err(Failed::Trouble)?;
    let run = laboratory.run(step.arguments, |faults| faults).map_err(Failed::Trouble)?;
    if run.acknowledged() {
        Ok(())
    } else {
        Err(Failed::trouble(format!("{:?} failed without a fault: {}", step.arguments, run.complaint())))
    }
}

fn judge(
    laboratory: &Laboratory,
    expectation: &Expectation,
    step: &Step,
    run: &Run,
    seed: u64,
    number: u64,
    what: &str,
) -> Result<(), Failed> {
    let told = if run.acknowledged() { Told::Done } else { Told::Nothing };
    expectation.check(&laboratory.store(), step, told).map_err(|broken| {
        let what = format!("{:?}, {what}: {broken}", step.arguments);
        Failed::Violation(Violation { campaign: "kill", seed, step: number, what })
    })
}
