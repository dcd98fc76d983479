//! Faults at every possible point in the real program, while it moves files.
//!
//! ```text
//!   script     snapshot take · run -- sh … · undo · (by hand: …) undo · restore · take switch · …
//!                   │
//!                   ├─ store and folders before the command are saved
//!                   ├─ it runs once without a fault, for reference
//!                   └─ then once with a fault at each write-class system call, in the store and in the folders
//!                             │
//!                             └─ `retake status`, then: conversation and files both before, or both after  (see [`check`])
//! ```
//!
//! The controls of [`kill`] execute steps in the wrong order: files before the conversation, and forgetting a worktree
//! before removing it. [`sealed`] tests undo and redo of a turn whose tools replaced ignored and secret files; its
//! control runs without the key.

mod check;
mod errors;
mod kill;
mod sandbox;
mod script;
mod sealed;
mod wrong_order;

pub use check::{Expectation, ReportedOutcome, StoreState, WorldState};
pub use errors::{ErrorsSummary, denied_removals, errors, errors_control};
pub use kill::{advance, kill, kill_control, rehearse, removal_control};
pub use sandbox::{Folders, Program, Sandbox, StoreLocation};
pub use script::{CommandKind, INITIAL_FILES, PROJECT, SCRIPT, Step, WORKTREE_FOLDER};
pub use sealed::{rules_control, sealed, sealed_control};
pub use wrong_order::{remove as mistaken_remove, undo as mistaken_undo};

use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError};

fn scratch() -> Result<ScratchDir, CampaignError> {
    ScratchDir::for_files().map_err(CampaignError::trouble)
}

/// The real program, built from the current sources.
pub fn retake() -> Result<Program, BoxError> {
    Ok(Program { path: retake_testing::find_program()?, first: &[] })
}
