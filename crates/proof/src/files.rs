//! Faults at every point where one can happen, in the real program, while it moves files.
//!
//! ```text
//!   script     snapshot take · run -- sh … · undo · (by hand: …) undo · restore · take switch · …
//!                   │
//!                   ├─ store and folders before the command are kept
//!                   ├─ it runs once without a fault: what conversation and files are after it
//!                   └─ then once for each write-class system call, in the store and in the folders: the fault
//!                             │
//!                             └─ `retake status`, and then: both halves before, or both after  (see [`check`])
//! ```
//!
//! The controls of [`kill`] are programs of `mistaken` order: files first, conversation second; and a folder of a take
//! that is forgotten first and removed second.
//! [`sealed`] strikes undo and redo of a turn whose tools replaced ignored and secret files; its control runs without
//! the key.

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

/// The real program, built from the sources as they are.
pub fn retake() -> Result<Program, Trouble> {
    Ok(Program { path: crate::faults::program()?, first: &[] })
}
