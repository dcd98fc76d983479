//! The reference model: random questions to the real timeline and to a naive one, which must agree.
//!
//! The naive model ([`world`], [`log`], [`naive`]) holds plain vectors and copies everything for every change.
//! It shares no code with the lists, the history or the store that it judges, only the words in which a
//! command is said. After each step the answer (done, nothing to do, or which refusal) and the whole touched
//! thread must be equal: entries with their text and role, takes, names, drafts, settings, tags, files, the
//! index rows, the prompts and roles that threads share, and whether undo and redo are possible.
//!
//! ```text
//!   dice ──► question ──┬──► Timeline (SQLite, Merkle lists, hops)  ──► state ──► picture ──┐
//!                       └──► World (vectors, copies, plain walks)   ────────────► picture ──┴─► equal?
//! ```
//!
//! What is proved besides: undo then redo leads to the very same state id; the same content always has the
//! same state id; every version that any thread ever had still loads and is what it was, checked when a
//! thread is set aside and again for all of them at the end, after the store was closed and opened anew.
//!
//! The controls are [`mutant::Mutant`]s: each makes the naive model wrong in one small way, and a run with any
//! of them must end with a violation.

pub mod ask;
pub mod clock;
pub mod compare;
pub mod generate;
pub mod log;
pub mod mutant;
pub mod naive;
pub mod observe;
pub mod picture;
mod run;
pub mod shared;
pub mod speech;
pub mod words;
pub mod world;

pub use run::{Options, Summary, run};
