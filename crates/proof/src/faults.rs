//! Faults at every point where one can happen, in the real program.
//!
//! ```text
//!   script      thread new · entry add · entry edit · undo · …         each a process of its own
//!                    │
//!                    ├─ the store before the command is kept
//!                    ├─ the command runs once without a fault: what it does when nothing goes wrong
//!                    └─ then once for each write-class system call n = 1, 2, 3 … : the fault strikes at n
//!                              │
//!                              └─ the store is opened again and looked at  (see [`check`])
//! ```
//!
//! [`kill`] lets the process die, with or without losing what was not synced; [`errors`] lets the call fail.

mod check;
mod errors;
mod kill;
mod laboratory;
mod redaction;
mod script;

pub use check::{Expectation, Logs};
pub(crate) use errors::Way;
pub use errors::{ErrorsPlan, errors, errors_control};
pub use kill::{KillPlan, Kills, control, kill};
pub use laboratory::{Laboratory, Run};
pub(crate) use laboratory::{copy, program};
pub use redaction::{kill_redaction, redaction_control};
pub use script::{SCRIPT, Step};
