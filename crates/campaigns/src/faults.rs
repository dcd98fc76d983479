//! Faults at every possible point in the real program.
//!
//! ```text
//!   script      thread new · entry add · entry edit · undo · …         each a process of its own
//!                    │
//!                    ├─ the store before the command is saved
//!                    ├─ the command runs once without a fault, for reference
//!                    └─ then once for each write-class system call n = 1, 2, 3 … with a fault at n
//!                              │
//!                              └─ the store is opened again and checked  (see [`check`])
//! ```
//!
//! [`kill`] kills the process, with or without losing unsynced data; [`errors`] makes the call fail.

mod check;
mod errors;
mod kill;
mod redaction;
mod sandbox;
mod script;

pub use check::{Expectation, StoreContents};
pub(crate) use errors::ErrorMode;
pub use errors::{ErrorsPlan, errors, errors_control};
pub use kill::{KillPlan, KillSummary, control, kill, kill_migration, migration_control};
pub use redaction::{kill_redaction, redaction_control};
pub(crate) use sandbox::copy;
pub use sandbox::{Run, Sandbox};
pub use script::{SCRIPT, Step};
