//! Random command lines over several projects, threads, takes and folders; after each, rules that hold for any command.
//!
//! ```text
//!   world/  a/ b/      projects               by hand   ─┐
//!           c/         a project with .git    retake …  ─┼─►  all folders and all tables of the store, before and after
//!           e/         no project             two execs ─┘         │
//!           outside/   where links lead                            └─ only the folder of the thread that is meant may change,
//!           w1/ …      worktrees                                      nothing by a dry run or a failure, …
//!   home/   the store
//! ```
//!
//! There is no model of what a command should do: `model` and `edits` have one. The rules compare the world before and
//! after a command with its command line and its answer. The controls are a program that lies ([`Mistake`]): it runs in
//! another way than it was asked to, touches what it should not, or leaves out a part of its answer.

mod check;
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

pub use mistake::Mistake;
pub use run::{CommandsPlan, CommandsSummary, commands, controls};
