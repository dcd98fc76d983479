//! The program dies at every write-class system call of every command.
//!
//! Four deaths: killed before the call; killed in the middle of it; the same two with a power cut, in which
//! everything that was not synced is lost. And one more per command: the power goes just after it was
//! acknowledged.
//!
//! The control is a disk that lies: syncs return at once and do nothing. A harness that does not see the loss
//! then would not see it either if the program forgot to sync.

use crate::dice::Dice;
use crate::shim::{Death, Faults};
use crate::violation::{Failed, Violation};

use super::check::{Expectation, Logs, Told};
use super::laboratory::{Laboratory, Run, program};
use super::script::{SCRIPT, Step};

const DEATHS: [Death; 4] = [Death::Kill, Death::Torn, Death::Cut, Death::TornCut];

/// How many kills, and which.
#[derive(Clone, Copy, Debug)]
pub struct KillPlan {
    /// Picks the kill points, if not all of them are wanted.
    pub seed: u64,
    /// About how many kill points; `None` for every one there is.
    pub points: Option<u64>,
}

/// What a campaign of kills came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// How many commands were struck.
    pub commands: u64,
    /// How many times the program was killed.
    pub kills: u64,
    /// How many of those had lost something that was not synced.
    pub lossy: u64,
}

/// Kills the program at every point, or at that many of them.
pub fn kill(plan: KillPlan) -> Result<Kills, Failed> {
    let laboratory = Laboratory::new(&program().map_err(Failed::Trouble)?).map_err(Failed::Trouble)?;
    let mut dice = Dice::new(plan.seed);
    let mut kills = Kills::default();
    // About this many points there are in all; a smaller plan takes its share of each command's.
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

/// The control: syncs that lie. It must be caught.
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

/// Runs a command once without a fault, to learn what it does; the store is kept as it was before.
pub(super) fn rehearse(laboratory: &Laboratory, step: &Step) -> Result<Expectation, Failed> {
    laboratory.keep().map_err(Failed::Trouble)?;
    let before = Logs::read(&laboratory.store()).map_err(Failed::trouble)?;
    advance(laboratory, step)?;
    let after = Logs::read(&laboratory.store()).map_err(Failed::trouble)?;
    // Looking may tidy the store's log; what strikes next must find it as the command before left it.
    laboratory.restore().map_err(Failed::Trouble)?;
    Ok(Expectation::between(before, &after))
}

/// Runs a command without a fault. It must work.
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
