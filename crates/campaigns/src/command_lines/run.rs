//! The campaign: a sequence of worlds, each for a number of steps.

use super::mistake::ProgramFault;
use super::world::{CommandLine, CommandRun, StepError, World};
use crate::rng::Rng;
use crate::violation::{BoxError, CampaignError, Violation, caught};

/// A world is replaced after this many steps, because its logs grow.
const STEPS_PER_WORLD: u64 = 100;

/// Every control must be caught within this many steps.
const CONTROL_STEPS: u64 = 1_000;
/// With one seed, the step that shows a mistake may be missing.
const CONTROL_SEEDS: u64 = 3;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct CommandsPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of steps.
    pub steps: u64,
    /// The injected fault.
    pub mistake: Option<ProgramFault>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandsSummary {
    /// Steps of one or more commands.
    pub steps: u64,
    /// Executed command lines.
    pub commands: u64,
    /// Command lines that failed without changing anything.
    pub failed: u64,
    /// Dry runs.
    pub dry: u64,
    /// Commands for a folder other than the current one.
    pub elsewhere: u64,
    /// Previews that were compared with the result.
    pub previews: u64,
    /// Paths whose restored content was checked.
    pub undone_paths: u64,
    /// Steps with two programs at once.
    pub overlaps: u64,
    /// New takes whose commit was checked.
    pub anchors: u64,
    /// Keys that a server repeated.
    pub keys: u64,
    /// Jumps to a version and back again.
    pub journeys: u64,
    /// Exports without a line that another store refused.
    pub forgeries: u64,
    /// Presets that were saved, loaded and deleted.
    pub presets: u64,
}

impl CommandsSummary {
    pub(super) fn count(&mut self, line: &CommandLine, ran: &CommandRun) {
        self.commands += 1;
        self.failed += u64::from(!ran.succeeded());
        self.dry += u64::from(line.is_dry());
        self.elsewhere += u64::from(line.may_change.as_ref().is_some_and(|folder| *folder != line.place));
    }

    fn add(&mut self, other: Self) {
        self.commands += other.commands;
        self.failed += other.failed;
        self.dry += other.dry;
        self.elsewhere += other.elsewhere;
        self.previews += other.previews;
        self.undone_paths += other.undone_paths;
        self.overlaps += other.overlaps;
        self.anchors += other.anchors;
        self.keys += other.keys;
        self.journeys += other.journeys;
        self.forgeries += other.forgeries;
        self.presets += other.presets;
    }
}

/// Runs random command lines.
pub fn commands(plan: CommandsPlan) -> Result<CommandsSummary, CampaignError> {
    let mut rng = Rng::new(plan.seed);
    let mut summary = CommandsSummary::default();
    while summary.steps < plan.steps {
        let failed = |stop, step, script: String| match stop {
            StepError::Trouble(trouble) => {
                CampaignError::Trouble(format!("step {step}: {trouble}\n{script}").into())
            }
            StepError::Broken(what) => {
                let what = format!("{what}\nTo reproduce it:\n{script}");
                CampaignError::Violation(Violation { campaign: "commands", seed: plan.seed, step, what })
            }
        };
        let mut world = World::new(rng.split(), plan.mistake)
            .map_err(|stop| failed(stop, summary.steps, String::new()))?;
        for _ in 0..STEPS_PER_WORLD.min(plan.steps - summary.steps) {
            summary.steps += 1;
            world.step().map_err(|stop| failed(stop, summary.steps, world.as_script()))?;
        }
        world.verify().map_err(|stop| failed(stop, summary.steps, world.as_script()))?;
        summary.add(world.summary);
    }
    Ok(summary)
}

/// The controls: each fault must be caught. Returns the violation that caught it.
pub fn controls(seed: u64) -> Result<Vec<(ProgramFault, Violation)>, BoxError> {
    let control = |mistake| {
        let run = |seed| {
            let plan = CommandsPlan { seed, steps: CONTROL_STEPS, mistake: Some(mistake) };
            Ok((mistake, caught(&format!("{mistake:?}"), commands(plan))?))
        };
        (1..CONTROL_SEEDS).fold(run(seed), |found, more| found.or_else(|_: BoxError| run(seed + more)))
    };
    ProgramFault::ALL.into_iter().map(control).collect()
}
