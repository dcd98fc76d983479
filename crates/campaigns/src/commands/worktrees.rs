//! `campaigns worktrees`.

use clap::Args;
use retake_campaigns::violation::{BoxError, caught};
use retake_campaigns::worktrees::{WorktreePlan, worktrees};

/// The control must be caught within this many commands per worker.
const CONTROL_COMMANDS: u64 = 40;

/// Run two processes in two takes of one thread: one in the project's folder, one in a worktree.
#[derive(Args, Debug)]
pub(crate) struct Worktrees {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of commands per process.
    #[arg(long, default_value_t = 500)]
    commands: u64,
    /// Run the control: undo in the wrong folder; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Worktrees {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("worktrees: seed {}", self.seed);
        let line = if self.control { control(self.seed)? } else { campaign(self.seed, self.commands)? };
        println!("worktrees: {line}");
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, commands: u64) -> Result<String, BoxError> {
    let workers = worktrees(WorktreePlan { seed, commands, misplaced: false })?;
    let changes: u64 = workers.iter().map(|worker| worker.changes).sum();
    let moves: u64 = workers.iter().map(|worker| worker.moves).sum();
    Ok(format!("{changes} changes and {moves} moves in two takes at once: each folder agrees with its take"))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    let plan = WorktreePlan { seed, commands: CONTROL_COMMANDS, misplaced: true };
    Ok(format!("the control was caught: {}", caught("undo in the wrong folder", worktrees(plan))?.what))
}
