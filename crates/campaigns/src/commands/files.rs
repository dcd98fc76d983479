//! `campaigns files`: kills and errors while files move.

use clap::{Args, Subcommand};
use retake_campaigns::faults::{ErrorsPlan, KillPlan};
use retake_campaigns::files::{
    Program, errors, errors_control, kill, kill_control, removal_control, rules_control, sealed,
    sealed_control,
};
use retake_campaigns::violation::{BoxError, caught};

/// Inject faults into the real program while it moves files.
#[derive(Args, Debug)]
pub(crate) struct Files {
    #[command(subcommand)]
    fault: Fault,
    /// Seed for selecting the points, if not all are tested.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Approximate number of points [default: all].
    #[arg(long, global = true)]
    points: Option<u64>,
    /// Run the control, which must be caught.
    #[arg(long, global = true)]
    control: bool,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kill the program at every write-class system call.
    Kill,
    /// Fail every write-class system call.
    Errors,
    /// Kill the program while it restores sealed files.
    Sealed,
}

impl Files {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("files: seed {}", self.seed);
        let result = match (self.fault, self.control) {
            (Fault::Kill, false) => killed(self.seed, self.points),
            (Fault::Kill, true) => killed_control(),
            (Fault::Errors, false) => failed(self.seed, self.points),
            (Fault::Errors, true) => failed_control(),
            (Fault::Sealed, false) => sealed_killed(self.seed, self.points),
            (Fault::Sealed, true) => sealed_killed_control(),
        };
        println!("files: {}", result?);
        Ok(())
    }
}

pub(super) fn killed(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let kills = kill(KillPlan { seed, points })?;
    Ok(format!(
        "{} kills in {} commands that move files, {} of them with unsynced writes lost: conversation and files \
         were always at the same operation",
        kills.kills, kills.commands, kills.lossy
    ))
}

pub(super) fn killed_control() -> Result<String, BoxError> {
    let mistaken = Program { path: std::env::current_exe()?, first: &["wrong-order"] };
    let violation = caught("files before the intent", kill_control(mistaken.clone()))?;
    let removal = caught("a folder that is forgotten before it is removed", removal_control(mistaken))?;
    Ok(format!("the controls were caught: {}; {}", violation.what, removal.what))
}

pub(super) fn failed(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let errors = errors(ErrorsPlan { seed, points })?;
    Ok(format!(
        "{} errors while files move, {} of them reported: the rest were harmless, and no move was incomplete",
        errors.injected, errors.failed
    ))
}

pub(super) fn failed_control() -> Result<String, BoxError> {
    let violation = caught("failures taken for successes", errors_control())?;
    Ok(format!("the control was caught: {}", violation.what))
}

pub(super) fn sealed_killed(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let kills = sealed(KillPlan { seed, points })?;
    Ok(format!(
        "{} kills while ignored and secret files were restored: every byte was restored, and none is unencrypted in the store",
        kills.kills
    ))
}

pub(super) fn sealed_killed_control() -> Result<String, BoxError> {
    let violation = caught("sealed files without their key", sealed_control())?;
    let rules = caught("changed ignore rules without the key", rules_control())?;
    Ok(format!("the controls were caught: {}; {}", violation.what, rules.what))
}
