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
mod laboratory;
mod mistaken;
mod script;
mod sealed;

pub use check::{Expectation, Said, Sight, Told};
pub use errors::{Errors, errors, errors_control};
pub use kill::{advance, kill, kill_control, rehearse, removal_control};
pub use laboratory::{Folders, Home, Laboratory, Program};
pub use mistaken::{remove as mistaken_remove, undo as mistaken_undo};
pub use script::{APART, BEGINNING, Nature, PROJECT, SCRIPT, Step};
pub use sealed::{sealed, sealed_control};

use crate::ground::Ground;
use crate::violation::{Failed, Trouble};

fn ground() -> Result<Ground, Failed> {
    Ground::for_files().map_err(Failed::trouble)
}

/// The real program, built from the current sources.
pub fn retake() -> Result<Program, Trouble> {
    Ok(Program { path: crate::faults::program()?, first: &[] })
}
