//! Random command lines over several projects, threads, takes and folders, checked against rules for all commands.
//!
//! ```text
//!   world/  a/ b/      projects               by hand   ─┐
//!           c/         a project with .git    retake …  ─┼─►  all folders and all tables of the store, before and after
//!           e/         no project             two execs ─┘         │
//!           outside/   target of links                             └─ only the folder of the target thread may change,
//!           w1/ …      worktrees                                      nothing by a dry run or a failure, …
//!   home/   the store
//! ```
//!
//! Unlike `model` and `edits`, this campaign has no model of commands. The rules compare the world before and
//! after a command with its command line and its answer. The controls are programs with an injected fault
//! ([`ProgramFault`]): they execute something else, change unrelated files, or omit a part of the answer.

mod check;
mod edges;
mod effects;
mod journeys;
mod mistake;
mod moves;
mod observe;
mod overlap;
mod probes;
mod report;
mod run;
mod scripts;
mod steps;
mod world;

pub use mistake::ProgramFault;
pub use run::{CommandsPlan, CommandsSummary, commands, controls};
