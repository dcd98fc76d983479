//! Random edits in one folder by several authors, moved along the log in any order, compared with a reference model.
//!
//! ```text
//!   agent of thread 1 ─┐                       ┌─ the real working copy: snapshots, plans, intents, moves
//!   agent of thread 2 ─┼─ edits ─► folder ─────┤
//!   the user          ─┘   undo, redo, jump,   └─ the reference model: maps of path to content, one per operation
//!                          restore, switch, fork, ...  │
//!                                                      └─ after each step every path must be the same
//! ```
//!
//! The texts are built such that a merge has one correct result: each has numbered values far apart, and an edit
//! changes one of them. The model merges value by value and needs no diff. The controls inject faults into the model
//! ([`ModelFault`]), each of which must be noticed.

mod conversation;
mod merge;
mod reference;
mod replay;
mod run;
mod splits;
mod take_history;
mod takes;
mod work;

pub use reference::ModelFault;
pub use run::{EditsPlan, EditsSummary, controls, walk};
