//! Random edits in one folder by several hands, moved along the log in any order, against a naive model.
//!
//! ```text
//!   agent of thread 1 ─┐                       ┌─ the real desk: snapshots, plans, intents, moves
//!   agent of thread 2 ─┼─ edits ─► folder ─────┤
//!   a human           ─┘   undo, redo, jump,   └─ the naive model: maps of path to content, one per operation
//!                          restore, switch, fork, ...  │
//!                                                      └─ after each step every path must be the same
//! ```
//!
//! The texts are made such that a merge has one right answer: each is a row of numbered places far apart from each
//! other, and an edit changes one of them. So the model merges place by place and needs to know nothing of
//! comparing texts. The controls are small mistakes in the model ([`Mistake`]), each of which must be noticed.

mod merge;
mod naive;
mod replay;
mod run;
mod splits;
mod story;
mod takes;
mod work;

pub use naive::Mistake;
pub use run::{EditsPlan, Walked, controls, walk};
