//! Kills the program at every write-class system call of every command.
//!
//! Four ways: before the call, in the middle of it, and both with a power cut that loses all unsynced data. In
//! addition, one power cut right after each command was acknowledged.
//!
//! In the control, syncs do nothing. A harness that misses the loss then would also miss a forgotten sync in the
//! program.

use std::fs;

use crate::rng::Rng;
use crate::shim::{Faults, KillMode};
use crate::violation::{BoxError, CampaignError, Violation};

use super::check::{Expectation, ReportedOutcome, StoreContents};
use super::sandbox::{Run, Sandbox};
use super::script::{MIGRATION, SCRIPT, Step};

const DEATHS: [KillMode; 4] = [KillMode::Kill, KillMode::Torn, KillMode::Cut, KillMode::TornCut];

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
pub struct KillSummary {
    /// Commands that were tested.
    pub commands: u64,
    /// Number of kills.
    pub kills: u64,
    /// Kills that lost unsynced data.
    pub lossy: u64,
}

/// Kills the program at every point, or at about the given number of points.
pub fn kill(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    kill_script(&sandbox()?, SCRIPT, 5_000, plan)
}

/// The same while it migrates a store of each earlier schema: the kill may leave the old schema, the old tables in new
/// pages, or the new schema.
pub fn kill_migration(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    let mut kills = KillSummary::default();
    for packed in OLD_STORES {
        let sandbox = sandbox()?;
        put_old_store(&sandbox, packed).map_err(CampaignError::Trouble)?;
        let more = kill_script(&sandbox, MIGRATION, 4_000, plan)?;
        kills.commands += more.commands;
        kills.kills += more.kills;
        kills.lossy += more.lossy;
    }
    Ok(kills)
}

/// The control: syncs do nothing. It must be caught.
pub fn control() -> Result<KillSummary, CampaignError> {
    cut_with_lying_syncs(&sandbox()?, &SCRIPT[..6])
}

/// The same for a migration with the change that follows it.
pub fn migration_control() -> Result<KillSummary, CampaignError> {
    let sandbox = sandbox()?;
    put_old_store(&sandbox, OLD_STORES[OLD_STORES.len() - 1]).map_err(CampaignError::Trouble)?;
    cut_with_lying_syncs(&sandbox, MIGRATION)
}

fn sandbox() -> Result<Sandbox, CampaignError> {
    let program = retake_testing::find_program().map_err(CampaignError::trouble)?;
    Sandbox::new(&program).map_err(CampaignError::Trouble)
}

/// Stores of the last programs with schema 1 and with schema 2; see `scripts/old-store`.
const OLD_STORES: [&[u8]; 2] = [
    include_bytes!("../../../store/tests/schema-1/retake.db.zst"),
    include_bytes!("../../../store/tests/schema-2/retake.db.zst"),
];

fn put_old_store(sandbox: &Sandbox, packed: &[u8]) -> Result<(), BoxError> {
    let bytes = zstd::stream::decode_all(packed)?;
    Ok(fs::write(sandbox.store().join("retake.db"), bytes)?)
}

/// `total` is the approximate number of points; a smaller plan tests a share of each command's.
fn kill_script(
    sandbox: &Sandbox,
    script: &[Step],
    total: u64,
    plan: KillPlan,
) -> Result<KillSummary, CampaignError> {
    let mut rng = Rng::new(plan.seed);
    let mut kills = KillSummary::default();
    let share = plan.points.map(|points| (total / points.max(1)).max(1));
    for (number, step) in (1..).zip(script) {
        let expectation = rehearse(sandbox, step)?;
        kills.commands += 1;
        for death in DEATHS {
            let mut call = 1 + share.map_or(0, |share| rng.below(share));
            loop {
                sandbox.restore().map_err(CampaignError::Trouble)?;
                let run = sandbox
                    .run(step.arguments, |faults| faults.die_at(call, death))
                    .map_err(CampaignError::Trouble)?;
                if run.report.faults == 0 {
                    break;
                }
                kills.kills += 1;
                kills.lossy += u64::from(run.report.lost > 0);
                let what = format!("{death:?} at call {call}");
                judge(sandbox, &expectation, step, &run, plan.seed, number, &what)?;
                call += share.map_or(1, |share| 1 + rng.below(2 * share));
            }
        }
        sandbox.restore().map_err(CampaignError::Trouble)?;
        let run = sandbox.run(step.arguments, Faults::cut_at_exit).map_err(CampaignError::Trouble)?;
        judge(sandbox, &expectation, step, &run, plan.seed, number, "power cut after the answer")?;
        advance(sandbox, step)?;
    }
    Ok(kills)
}

fn cut_with_lying_syncs(sandbox: &Sandbox, script: &[Step]) -> Result<KillSummary, CampaignError> {
    let mut kills = KillSummary::default();
    for (number, step) in (1..).zip(script) {
        let expectation = rehearse(sandbox, step)?;
        sandbox.restore().map_err(CampaignError::Trouble)?;
        let run = sandbox
            .run(step.arguments, |faults| faults.cut_at_exit().lying_syncs())
            .map_err(CampaignError::Trouble)?;
        kills.kills += 1;
        judge(sandbox, &expectation, step, &run, 0, number, "power cut with syncs that lie")?;
        advance(sandbox, step)?;
    }
    Ok(kills)
}

/// Runs a command once without a fault, for reference, and restores the store.
pub(super) fn rehearse(sandbox: &Sandbox, step: &Step) -> Result<Expectation, CampaignError> {
    sandbox.keep().map_err(CampaignError::Trouble)?;
    let before = StoreContents::read(&sandbox.store()).map_err(CampaignError::trouble)?;
    advance(sandbox, step)?;
    let after = StoreContents::read(&sandbox.store()).map_err(CampaignError::trouble)?;
    // Reading may checkpoint the store; the next run must start from the original files.
    sandbox.restore().map_err(CampaignError::Trouble)?;
    Ok(Expectation::between(before, &after))
}

/// Runs a command without a fault. It must succeed.
pub(super) fn advance(sandbox: &Sandbox, step: &Step) -> Result<(), CampaignError> {
    sandbox.restore().map_err(CampaignError::Trouble)?;
    let run = sandbox.run(step.arguments, |faults| faults).map_err(CampaignError::Trouble)?;
    if run.acknowledged() {
        Ok(())
    } else {
        Err(CampaignError::trouble(format!(
            "{:?} failed without a fault: {}",
            step.arguments,
            run.complaint()
        )))
    }
}

fn judge(
    sandbox: &Sandbox,
    expectation: &Expectation,
    step: &Step,
    run: &Run,
    seed: u64,
    number: u64,
    what: &str,
) -> Result<(), CampaignError> {
    let reported = if run.acknowledged() { ReportedOutcome::Done } else { ReportedOutcome::Nothing };
    expectation.check(&sandbox.store(), step, reported).map_err(|broken| {
        let what = format!("{:?}, {what}: {broken}", step.arguments);
        CampaignError::Violation(Violation { campaign: "kill", seed, step: number, what })
    })
}
