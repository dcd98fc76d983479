//! `campaigns turns`.

use clap::{Args, Subcommand};
use retake_campaigns::faults::KillPlan;
use retake_campaigns::turns::{TurnsPlan, controls, kill, kill_control, leftover_control, walk};
use retake_campaigns::violation::{BoxError, caught};

/// Run turns with tools in one conversation under failing servers and concurrent changes.
#[derive(Args, Debug)]
pub(crate) struct Turns {
    #[command(subcommand)]
    fault: Option<Fault>,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Number of turns.
    #[arg(long = "turns", default_value_t = 1_000)]
    count: u64,
    /// Percentage of failing answers.
    #[arg(long, default_value_t = 30)]
    chaos: u64,
    /// Approximate number of points [default: all].
    #[arg(long, global = true)]
    points: Option<u64>,
    /// Run the controls, which must be caught.
    #[arg(long, global = true)]
    control: bool,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kill the real program at every write-class system call of whole turns.
    Kill,
}

impl Turns {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("turns: seed {}", self.seed);
        let result = match (self.fault, self.control) {
            (None, false) => campaign(self.seed, self.count, self.chaos),
            (None, true) => control(self.seed),
            (Some(Fault::Kill), false) => killed(self.seed, self.points),
            (Some(Fault::Kill), true) => killed_control(),
        };
        println!("turns: {}", result?);
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, turns: u64, chaos: u64) -> Result<String, BoxError> {
    let walked = walk(TurnsPlan { seed, turns, chaos, mistake: None })?;
    Ok(format!(
        "{} turns in {} steps: {} completed, {} stopped ({} while a tool printed continuously, {} while a summary was written), {} failed, {} changes while a summary was written; {} forks, {} takes created during a turn, {} refused retries, {} moves; {} of \
         {} requests were answered badly, {} tool calls, {} projections: no orphan, files and conversation together, no leftovers",
        walked.turns,
        walked.steps,
        walked.completed,
        walked.stopped,
        walked.stopped_while_printing,
        walked.summaries_stopped,
        walked.failed,
        walked.summaries_disturbed,
        walked.forks,
        walked.beside,
        walked.refused,
        walked.moves,
        walked.failures,
        walked.requests,
        walked.calls,
        walked.projections
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    let caught = controls(seed)?;
    let whats: Vec<String> = caught.into_iter().map(|violation| violation.what).collect();
    Ok(format!("all {} controls were caught: {}", whats.len(), whats.join("; ")))
}

pub(super) fn killed(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let kills = kill(KillPlan { seed, points })?;
    Ok(format!(
        "{} kills in {} turns with tools, {} of them with unsynced writes lost, {} while a call was open: {} turns \
         were resumed and {} closed, no command ran twice, and conversation and files were always together",
        kills.kills, kills.turns, kills.lossy, kills.interrupted, kills.resumed, kills.closed
    ))
}

pub(super) fn killed_control() -> Result<String, BoxError> {
    let violation = caught("syncs that lie", kill_control())?;
    let leftover = caught("a temporary file that stays", leftover_control())?;
    Ok(format!("the controls were caught: {}; {}", violation.what, leftover.what))
}
