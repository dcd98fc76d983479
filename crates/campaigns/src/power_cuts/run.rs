//! Cuts the power at selected system calls of each command of the script.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::files::{
    CommandKind, Expectation, ReportedOutcome, SCRIPT, Sandbox, Step, StoreLocation, advance, rehearse,
    retake,
};
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::shim::{Faults, Report};
use crate::violation::{BoxError, CampaignError, Violation};

use super::disk::Disk;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct CutsPlan {
    /// Selects the points.
    pub seed: u64,
    /// Number of cuts over all commands.
    pub cuts: u64,
    /// Location of the store.
    pub home: StoreLocation,
    /// Whether syncs work. If not, a loss must be found.
    pub syncs: SyncBehavior,
}

/// Whether syncs work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncBehavior {
    /// They do.
    Honest,
    /// They return at once and do nothing: the control.
    Lying,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutsSummary {
    /// Number of power cuts.
    pub cuts: u64,
    /// Cuts during a command.
    pub within: u64,
    /// Cuts right after a command was acknowledged.
    pub after: u64,
    /// Of these, cuts after a program that does not sync its files.
    pub unsynced: u64,
}

/// Runs the campaign.
pub fn cut(plan: CutsPlan) -> Result<CutsSummary, CampaignError> {
    let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
    let disk = Disk::new(scratch.path(), "world")?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, plan.home)?;
    let mut rng = Rng::new(plan.seed);
    let mut cuts = CutsSummary::default();
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&mut sandbox, step)?;
        sandbox.restore()?;
        let calls = sandbox.run(step.place, step.arguments, |faults| faults)?.report.calls;
        if step.nature == CommandKind::Runs {
            unsynced(&sandbox, &disk, step, plan, number, &expectation)?;
            cuts.cuts += 1;
            cuts.after += 1;
            cuts.unsynced += 1;
        }
        let target = plan.cuts * number / SCRIPT.len() as u64;
        while cuts.cuts < target {
            // The last point is after all calls: the command ends, then the power is cut.
            let call = 1 + rng.below(calls + calls / 4 + 1);
            sandbox.restore()?;
            disk.sync()?;
            let reported = strike(&sandbox, &disk, step.place, step.arguments, call, plan.syncs)?;
            cuts.cuts += 1;
            if reported == ReportedOutcome::Done {
                cuts.after += 1;
            } else {
                cuts.within += 1;
            }
            expectation.check(&sandbox, step, reported).map_err(|broken| {
                let what = format!("{:?}, power cut at call {call} of {calls}: {broken}", step.arguments);
                CampaignError::Violation(Violation {
                    campaign: "power-cuts",
                    seed: plan.seed,
                    step: number,
                    what,
                })
            })?;
        }
        advance(&sandbox, step)?;
    }
    Ok(cuts)
}

/// Runs a program that does not sync its files, and cuts the power once its end is acknowledged: the files must
/// survive.
fn unsynced(
    sandbox: &Sandbox,
    disk: &Disk,
    step: &Step,
    plan: CutsPlan,
    number: u64,
    expectation: &Expectation,
) -> Result<(), CampaignError> {
    let arguments: Vec<&str> =
        step.arguments.iter().map(|word| word.strip_suffix("; sync -f .").unwrap_or(word)).collect();
    sandbox.restore()?;
    disk.sync()?;
    let reported = strike(sandbox, disk, step.place, &arguments, NEVER, plan.syncs)?;
    let broken = match reported {
        ReportedOutcome::Done => expectation.check(sandbox, step, reported).err(),
        _ => Some("it did not end".to_owned()),
    };
    broken.map_or(Ok(()), |broken| {
        let what = format!("{arguments:?}, power cut after the acknowledgement: {broken}");
        Err(CampaignError::Violation(Violation {
            campaign: "power-cuts",
            seed: plan.seed,
            step: number,
            what,
        }))
    })
}

/// A call number that no command reaches.
const NEVER: u64 = u64::MAX / 2;

/// Runs a command up to a call, cuts the power, and mounts the disk again.
fn strike(
    sandbox: &Sandbox,
    disk: &Disk,
    place: &str,
    arguments: &[&str],
    call: u64,
    syncs: SyncBehavior,
) -> Result<ReportedOutcome, BoxError> {
    let faults: Faults = sandbox.faults().stop_at(call);
    let faults = if syncs == SyncBehavior::Lying { faults.lying_syncs() } else { faults };
    let mut command = sandbox.command(place, arguments);
    let mut child =
        faults.attach(sandbox.shim(), &mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let reported = stopped_or_ended(&mut child)?;
    disk.cut()?;
    if reported == ReportedOutcome::Nothing {
        child.kill()?;
        child.wait()?;
    }
    disk.bring_back()?;
    Report::read(&sandbox.counted())?;
    Ok(reported)
}

/// Waits until all threads of the process are stopped, or it has exited.
fn stopped_or_ended(child: &mut Child) -> Result<ReportedOutcome, BoxError> {
    const PATIENCE: Duration = Duration::from_mins(1);
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return match (status.success(), status.signal()) {
                (true, _) => Ok(ReportedOutcome::Done),
                _ => Err(format!("it ended without a fault: {status}").into()),
            };
        }
        if is_stopped(child.id())? {
            return Ok(ReportedOutcome::Nothing);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    Err("it neither stopped nor ended".into())
}

fn is_stopped(process: u32) -> Result<bool, BoxError> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Ok(false) };
    for thread in threads {
        let Ok(text) = std::fs::read_to_string(thread?.path().join("stat")) else { continue };
        let state = text.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        if state != Some('T') {
            return Ok(false);
        }
    }
    Ok(true)
}
