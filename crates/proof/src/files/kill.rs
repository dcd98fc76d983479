//! Kills the program at every write-class system call of commands that move files.
//!
//! In the four ways of [`faults::kill`](crate::faults::kill). Every third time the recovering command is killed too,
//! and a third command has to recover.

use crate::dice::Dice;
use crate::faults::{KillPlan, Kills, Run};
use crate::shim::{Death, Faults};
use crate::violation::{Failed, Trouble, Violation};

use super::check::{Expectation, Sight, Told, check_mentions};
use super::laboratory::{Home, Laboratory, Program};
use super::script::{APART, Nature, PROJECT, SCRIPT, Step};
use super::{ground, retake};

const DEATHS: [Death; 4] = [Death::Kill, Death::Torn, Death::Cut, Death::TornCut];

/// Kills the program at every point, or at about the given number of points.
pub fn kill(plan: KillPlan) -> Result<Kills, Failed> {
    let ground = ground()?;
    let mut laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
    // The approximate total number of points; a smaller plan tests a share of each command's.
    let mut strikes = Strikes::new(plan, 9000);
    for (number, step) in (1..).zip(SCRIPT) {
        strikes.step(&mut laboratory, number, step)?;
    }
    Ok(strikes.kills)
}

/// The control: a program that moves files before it records the intent.
pub fn kill_control(mistaken: Program) -> Result<Kills, Failed> {
    control(mistaken, |step| step.arguments == ["undo"] && step.by_hand.is_none())
}

/// The control: a program that forgets a worktree before it removes its files.
pub fn removal_control(mistaken: Program) -> Result<Kills, Failed> {
    control(mistaken, |step| step.nature == Nature::Closes)
}

fn control(mistaken: Program, strikes_at: impl Fn(&Step) -> bool) -> Result<Kills, Failed> {
    let ground = ground()?;
    let mut laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
    let mut strikes = Strikes::new(KillPlan { seed: 1, points: None }, 0);
    for (number, step) in (1..).zip(SCRIPT) {
        if strikes_at(step) {
            laboratory.instead(mistaken);
            strikes.step(&mut laboratory, number, step)?;
            break;
        }
        laboratory.prepare(step)?;
        laboratory.must(step.place, step.arguments)?;
    }
    Ok(strikes.kills)
}

/// A running campaign and its counts.
pub(super) struct Strikes {
    dice: Dice,
    seed: u64,
    share: Option<u64>,
    pub(super) kills: Kills,
}

impl Strikes {
    /// Starts a campaign that tests about as many of `all` points as the plan wants.
    pub(super) fn new(plan: KillPlan, all: u64) -> Self {
        let share = plan.points.map(|points| (all / points.max(1)).max(1));
        Self { dice: Dice::new(plan.seed), seed: plan.seed, share, kills: Kills::default() }
    }

    /// Kills one command at its points, then runs it without a fault.
    pub(super) fn step(
        &mut self,
        laboratory: &mut Laboratory,
        number: u64,
        step: &Step,
    ) -> Result<(), Failed> {
        let expectation = rehearse(laboratory, step)?;
        self.kills.commands += 1;
        for death in DEATHS {
            let mut call = 1 + self.share.map_or(0, |share| self.dice.below(share));
            loop {
                laboratory.restore()?;
                let run = laboratory.run(step.place, step.arguments, |faults| faults.die_at(call, death))?;
                if run.report.faults == 0 {
                    break;
                }
                self.kills.kills += 1;
                self.kills.lossy += u64::from(run.report.lost > 0);
                let mut what = format!("{death:?} at call {call}");
                // Not always: a read-only command may change what the next one meets.
                if self.dice.once_in(4) {
                    let mentioned = check_mentions(laboratory, step);
                    self.judged(mentioned, number, step, &what)?;
                }
                if self.dice.once_in(3) {
                    let again = 1 + self.dice.below(60);
                    let place = if laboratory.place(step.place).is_dir() { step.place } else { PROJECT };
                    let second = laboratory.run(place, &["status"], |faults| faults.die_at(again, death))?;
                    self.kills.kills += second.report.faults;
                    what = format!("{what}, then at call {again} of the next command");
                }
                self.judge(laboratory, &expectation, number, step, &run, &what)?;
                call += self.share.map_or(1, |share| 1 + self.dice.below(2 * share));
            }
        }
        laboratory.restore()?;
        let run = laboratory.run(step.place, step.arguments, Faults::cut_at_exit)?;
        self.judge(laboratory, &expectation, number, step, &run, "power cut after the answer")?;
        advance(laboratory, step)
    }

    fn judge(
        &self,
        laboratory: &Laboratory,
        expectation: &Expectation,
        number: u64,
        step: &Step,
        run: &Run,
        what: &str,
    ) -> Result<(), Failed> {
        let told = if run.acknowledged() { Told::Done } else { Told::Nothing };
        let checked = expectation.check(laboratory, step, told).and_then(|()| retried(laboratory, step));
        self.judged(checked, number, step, what)
    }

    fn judged(
        &self,
        checked: Result<(), String>,
        number: u64,
        step: &Step,
        what: &str,
    ) -> Result<(), Failed> {
        checked.map_err(|broken| {
            let what = format!("{:?}, {what}: {broken}", step.arguments);
            Failed::Violation(Violation { campaign: "files", seed: self.seed, step: number, what })
        })
    }
}

/// A partially filled folder belongs to no take and is reported when it is in the way; after it is removed, the next
/// attempt succeeds.
fn retried(laboratory: &Laboratory, step: &Step) -> Result<(), String> {
    let fail = |trouble: Trouble| trouble.to_string();
    if step.nature != Nature::Opens || Sight::of(laboratory).map_err(fail)?.said.apart {
        return Ok(());
    }
    let again = laboratory.run(step.place, step.arguments, |faults| faults).map_err(fail)?;
    if again.acknowledged() {
        return Ok(());
    }
    if !again.complaint().contains("exists already") {
        return Err(format!("a second attempt: {}", again.complaint()));
    }
    std::fs::remove_dir_all(laboratory.place(APART)).map_err(|error| error.to_string())?;
    laboratory
        .must(step.place, step.arguments)
        .map(|_| ())
        .map_err(|trouble| format!("a third attempt: {trouble}"))
}

/// Runs a command once without a fault, for reference, and restores everything.
pub fn rehearse(laboratory: &mut Laboratory, step: &Step) -> Result<Expectation, Failed> {
    let before = Sight::of(laboratory)?.said;
    laboratory.prepare(step)?;
    laboratory.keep()?;
    let files = laboratory.folders()?;
    advance(laboratory, step)?;
    let after = Sight::of(laboratory)?;
    Ok(Expectation { before, files, after })
}

/// Runs a command without a fault. It must succeed.
pub fn advance(laboratory: &Laboratory, step: &Step) -> Result<(), Failed> {
    laboratory.restore()?;
    laboratory.must(step.place, step.arguments)?;
    Ok(())
}
