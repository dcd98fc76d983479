//! Cuts the power at selected system calls of each command of the script.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::files::{Expectation, Home, Laboratory, Nature, SCRIPT, Step, Told, advance, rehearse, retake};
use crate::ground::Ground;
use crate::shim::{Faults, Report};
use crate::violation::{Failed, Trouble, Violation};

use super::disk::Disk;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct CutsPlan {
    /// Selects the points.
    pub seed: u64,
    /// Number of cuts over all commands.
    pub cuts: u64,
    /// Location of the store.
    pub home: Home,
    /// Whether syncs work. If not, a loss must be found.
    pub syncs: Syncs,
}

/// Whether syncs work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncs {
    /// They do.
    Honest,
    /// They return at once and do nothing: the control.
    Lying,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
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
pub fn cut(plan: CutsPlan) -> Result<Cuts, Failed> {
    let ground = Ground::for_files().map_err(Failed::trouble)?;
    let disk = Disk::new(ground.path(), "world")?;
    let mut laboratory = Laboratory::new(ground.path(), retake()?, plan.home)?;
    let mut dice = Dice::new(plan.seed);
    let mut cuts = Cuts::default();
    for (number, step) in (1..).zip(SCRIPT) {
        let expectation = rehearse(&mut laboratory, step)?;
        laboratory.restore()?;
        let calls = laboratory.run(step.place, step.arguments, |faults| faults)?.report.calls;
        if step.nature == Nature::Runs {
            unsynced(&laboratory, &disk, step, plan, number, &expectation)?;
            cuts.cuts += 1;
            cuts.after += 1;
            cuts.unsynced += 1;
        }
        let target = plan.cuts * number / SCRIPT.len() as u64;
        while cuts.cuts < target {
            // The last point is after all calls: the command ends, then the power is cut.
            let call = 1 + dice.below(calls + calls / 4 + 1);
            laboratory.restore()?;
            disk.sync()?;
            let told = strike(&laboratory, &disk, step.place, step.arguments, call, plan.syncs)?;
            cuts.cuts += 1;
            if told == Told::Done {
                cuts.after += 1;
            } else {
                cuts.within += 1;
            }
            expectation.check(&laboratory, step, told).map_err(|broken| {
                let what = format!("{:?}, power cut at call {call} of {calls}: {broken}", step.arguments);
                Failed::Violation(Violation { campaign: "cuts", seed: plan.seed, step: number, what })
            })?;
        }
        advance(&laboratory, step)?;
    }
    Ok(cuts)
}

/// Runs a program that does not sync its files, and cuts the power once its end is acknowledged: the files must
/// survive.
fn unsynced(
    laboratory: &Laboratory,
    disk: &Disk,
    step: &Step,
    plan: CutsPlan,
    number: u64,
    expectation: &Expectation,
) -> Result<(), Failed> {
    let arguments: Vec<&str> =
        step.arguments.iter().map(|word| word.strip_suffix("; sync -f .").unwrap_or(word)).collect();
    laboratory.restore()?;
    disk.sync()?;
    let told = strike(laboratory, disk, step.place, &arguments, NEVER, plan.syncs)?;
    let broken = match told {
        Told::Done => expectation.check(laboratory, step, told).err(),
        _ => Some("it did not end".to_owned()),
    };
    broken.map_or(Ok(()), |broken| {
        let what = format!("{arguments:?}, power cut after the acknowledgement: {broken}");
        Err(Failed::Violation(Violation { campaign: "cuts", seed: plan.seed, step: number, what }))
    })
}

/// A call number that no command reaches.
const NEVER: u64 = u64::MAX / 2;

/// Runs a command up to a call, cuts the power, and mounts the disk again.
fn strike(
    laboratory: &Laboratory,
    disk: &Disk,
    place: &str,
    arguments: &[&str],
    call: u64,
    syncs: Syncs,
) -> Result<Told, Trouble> {
    let faults: Faults = laboratory.faults().stop_at(call);
    let faults = if syncs == Syncs::Lying { faults.lying_syncs() } else { faults };
    let mut command = laboratory.command(place, arguments);
    let mut child =
        faults.attach(laboratory.shim(), &mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let told = stopped_or_ended(&mut child)?;
    disk.cut()?;
    if told == Told::Nothing {
        child.kill()?;
        child.wait()?;
    }
    disk.bring_back()?;
    Report::read(&laboratory.counted())?;
    Ok(told)
}

/// Waits until all threads of the process are stopped, or it has exited.
fn stopped_or_ended(child: &mut Child) -> Result<Told, Trouble> {
    const PATIENCE: Duration = Duration::from_mins(1);
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return match (status.success(), status.signal()) {
                (true, _) => Ok(Told::Done),
                _ => Err(format!("it ended without a fault: {status}").into()),
            };
        }
        if is_stopped(child.id())? {
            return Ok(Told::Nothing);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    Err("it neither stopped nor ended".into())
}

fn is_stopped(process: u32) -> Result<bool, Trouble> {
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
