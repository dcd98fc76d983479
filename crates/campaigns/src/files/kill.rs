//! Kills the program at every write-class system call of commands that move files.
//!
//! In the four ways of [`faults::kill`](crate::faults::kill). Every third time the recovering command is killed too,
//! and a third command has to recover.

use crate::faults::{KillPlan, KillSummary, Run};
use crate::rng::Rng;
use crate::shim::{Faults, KillMode};
use crate::violation::{BoxError, CampaignError, Violation};

use super::check::{Expectation, ReportedOutcome, WorldState, check_mentions};
use super::sandbox::{Program, Sandbox, StoreLocation};
use super::script::{CommandKind, PROJECT, SCRIPT, Step, WORKTREE_FOLDER};
use super::{retake, scratch};

const DEATHS: [KillMode; 4] = [KillMode::Kill, KillMode::Torn, KillMode::Cut, KillMode::TornCut];

/// Kills the program at every point, or at about the given number of points.
pub fn kill(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    // The approximate total number of points; a smaller plan tests a share of each command's.
    let mut strikes = KillRun::new(plan, 9000);
    for (number, step) in (1..).zip(SCRIPT) {
        strikes.step(&mut sandbox, number, step)?;
    }
    Ok(strikes.kills)
}

/// The control: a program that moves files before it records the intent.
pub fn kill_control(mistaken: Program) -> Result<KillSummary, CampaignError> {
    control(mistaken, |step| step.arguments == ["undo"] && step.by_hand.is_none())
}

/// The control: a program that forgets a worktree before it removes its files.
pub fn removal_control(mistaken: Program) -> Result<KillSummary, CampaignError> {
    control(mistaken, |step| step.nature == CommandKind::Closes)
}

fn control(mistaken: Program, strikes_at: impl Fn(&Step) -> bool) -> Result<KillSummary, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    let mut strikes = KillRun::new(KillPlan { seed: 1, points: None }, 0);
    for (number, step) in (1..).zip(SCRIPT) {
        if strikes_at(step) {
            sandbox.use_program(mistaken);
            strikes.step(&mut sandbox, number, step)?;
            break;
        }
        sandbox.prepare(step)?;
        sandbox.run_checked(step.place, step.arguments)?;
    }
    Ok(strikes.kills)
}

/// A running campaign and its counts.
pub(super) struct KillRun {
    rng: Rng,
    seed: u64,
    share: Option<u64>,
    pub(super) kills: KillSummary,
}

impl KillRun {
    /// Starts a campaign that tests about as many of `all` points as the plan wants.
    pub(super) fn new(plan: KillPlan, all: u64) -> Self {
        let share = plan.points.map(|points| (all / points.max(1)).max(1));
        Self { rng: Rng::new(plan.seed), seed: plan.seed, share, kills: KillSummary::default() }
    }

    /// Kills one command at its points, then runs it without a fault.
    pub(super) fn step(
        &mut self,
        sandbox: &mut Sandbox,
        number: u64,
        step: &Step,
    ) -> Result<(), CampaignError> {
        let expectation = rehearse(sandbox, step)?;
        self.kills.commands += 1;
        for death in DEATHS {
            let mut call = 1 + self.share.map_or(0, |share| self.rng.below(share));
            loop {
                sandbox.restore()?;
                let run = sandbox.run(step.place, step.arguments, |faults| faults.die_at(call, death))?;
                if run.report.faults == 0 {
                    break;
                }
                self.kills.kills += 1;
                self.kills.lossy += u64::from(run.report.lost > 0);
                let mut what = format!("{death:?} at call {call}");
                // Not always: a read-only command may change what the next one meets.
                if self.rng.once_in(4) {
                    let mentioned = check_mentions(sandbox, step);
                    self.judged(mentioned, number, step, &what)?;
                }
                if self.rng.once_in(3) {
                    let again = 1 + self.rng.below(60);
                    let place = if sandbox.place(step.place).is_dir() { step.place } else { PROJECT };
                    let second = sandbox.run(place, &["status"], |faults| faults.die_at(again, death))?;
                    self.kills.kills += second.report.faults;
                    what = format!("{what}, then at call {again} of the next command");
                }
                self.judge(sandbox, &expectation, number, step, &run, &what)?;
                call += self.share.map_or(1, |share| 1 + self.rng.below(2 * share));
            }
        }
        sandbox.restore()?;
        let run = sandbox.run(step.place, step.arguments, Faults::cut_at_exit)?;
        self.judge(sandbox, &expectation, number, step, &run, "power cut after the answer")?;
        advance(sandbox, step)
    }

    fn judge(
        &self,
        sandbox: &Sandbox,
        expectation: &Expectation,
        number: u64,
        step: &Step,
        run: &Run,
        what: &str,
    ) -> Result<(), CampaignError> {
        let reported = if run.acknowledged() { ReportedOutcome::Done } else { ReportedOutcome::Nothing };
        let checked = expectation.check(sandbox, step, reported).and_then(|()| retried(sandbox, step));
        self.judged(checked, number, step, what)
    }

    fn judged(
        &self,
        checked: Result<(), String>,
        number: u64,
        step: &Step,
        what: &str,
    ) -> Result<(), CampaignError> {
        checked.map_err(|broken| {
            let what = format!("{:?}, {what}: {broken}", step.arguments);
            CampaignError::Violation(Violation { campaign: "files", seed: self.seed, step: number, what })
        })
    }
}

/// A partially filled folder belongs to no take and is reported when it is in the way; after it is removed, the next
/// attempt succeeds.
fn retried(sandbox: &Sandbox, step: &Step) -> Result<(), String> {
    let fail = |trouble: BoxError| trouble.to_string();
    if step.nature != CommandKind::Opens || WorldState::of(sandbox).map_err(fail)?.store_state.worktree {
        return Ok(());
    }
    let again = sandbox.run(step.place, step.arguments, |faults| faults).map_err(fail)?;
    if again.acknowledged() {
        return Ok(());
    }
    if !again.complaint().contains("already exists") {
        return Err(format!("a second attempt: {}", again.complaint()));
    }
    std::fs::remove_dir_all(sandbox.place(WORKTREE_FOLDER)).map_err(|error| error.to_string())?;
    sandbox
        .run_checked(step.place, step.arguments)
        .map(|_| ())
        .map_err(|trouble| format!("a third attempt: {trouble}"))
}

/// Runs a command once without a fault, for reference, and restores everything.
pub fn rehearse(sandbox: &mut Sandbox, step: &Step) -> Result<Expectation, CampaignError> {
    let before = WorldState::of(sandbox)?.store_state;
    sandbox.prepare(step)?;
    sandbox.keep()?;
    let files = sandbox.folders()?;
    advance(sandbox, step)?;
    let after = WorldState::of(sandbox)?;
    Ok(Expectation { before, files, after })
}

/// Runs a command without a fault. It must succeed.
pub fn advance(sandbox: &Sandbox, step: &Step) -> Result<(), CampaignError> {
    sandbox.restore()?;
    sandbox.run_checked(step.place, step.arguments)?;
    Ok(())
}
