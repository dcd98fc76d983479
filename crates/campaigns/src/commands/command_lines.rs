//! `campaigns commands`.

use clap::Args;
use retake_campaigns::command_lines::{CommandsPlan, commands, controls};
use retake_campaigns::violation::BoxError;

/// Run random command lines over several projects and folders, checked against rules for all commands.
#[derive(Args, Debug)]
pub(crate) struct Commands {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of steps.
    #[arg(long, default_value_t = 5_000)]
    steps: u64,
    /// Run the controls: inject one fault after another; each must be caught.
    #[arg(long)]
    control: bool,
}

impl Commands {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("commands: seed {}", self.seed);
        let line = if self.control { control(self.seed)? } else { campaign(self.seed, self.steps)? };
        println!("commands: {line}");
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, steps: u64) -> Result<String, BoxError> {
    let done = commands(CommandsPlan { seed, steps, mistake: None })?;
    Ok(format!(
        "{} steps, {} command lines, {} of them refused and {} dry runs, {} for another folder than where they were \
         started; {} previews named what was then done, {} paths came back, {} times two programs ran at once, {} new \
         takes had their commit, {} keys were kept nowhere, {} jumps and jumps back, {} incomplete exports were refused, {} \
         presets came back",
        done.steps,
        done.commands,
        done.failed,
        done.dry,
        done.elsewhere,
        done.previews,
        done.undone_paths,
        done.overlaps,
        done.anchors,
        done.keys,
        done.journeys,
        done.forgeries,
        done.presets
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    let caught = controls(seed)?;
    let first = |what: &str| what.lines().next().unwrap_or_default().chars().take(120).collect::<String>();
    let whats = caught.iter().map(|(mistake, violation)| format!("{mistake:?}: {}", first(&violation.what)));
    Ok(format!(
        "all {} false reports of the program were caught: {}",
        caught.len(),
        whats.collect::<Vec<_>>().join("; ")
    ))
}
