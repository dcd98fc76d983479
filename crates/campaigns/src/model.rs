//! The reference model: random requests to the real timeline and to a simple model, which must agree.
//!
//! The model ([`world`], [`log`], [`mod@reference`]) uses plain vectors and copies everything for every change. It shares no
//! code with the lists, the history or the store that it checks, only the command types. After each step the outcome
//! (done, nothing to do, or which refusal) and the whole thread must be equal: entries with text and role, takes,
//! names, drafts, settings, tags, files, index rows, shared prompts and roles, and whether undo and redo are possible.
//!
//! ```text
//!   rng ───► request ───┬──► Timeline (SQLite, Merkle lists, hops)  ──► state ──► plain values ──┐
//!                       └──► World (vectors, copies, plain walks)   ────────────► plain values ──┴─► equal?
//! ```
//!
//! Further checks: undo then redo leads to the same state id; equal content always has the same state id; every version
//! that any thread ever had still loads unchanged, checked when a thread is retired and again for all at the end, after
//! the store was closed and reopened.
//!
//! The controls are [`fault::ModelFault`]s: each makes the model wrong in one small way, and a run with it must end with a
//! violation.

pub mod apply;
pub mod clock;
pub mod compare;
pub mod entries;
pub mod fault;
pub mod generate;
pub mod log;
pub mod names;
pub mod observe;
pub mod plain;
pub mod reference;
mod run;
pub mod shared;
pub mod world;

pub use run::{Options, Summary, run};
