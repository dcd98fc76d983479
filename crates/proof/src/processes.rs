//! Eight processes on one store, some killed at random: what any of them was told is done stays done.
//!
//! The program runs itself again as workers and readers. A worker has one or more lanes, threads of its own
//! that write at the same time; each lane adds entries to threads that all share and changes one thread of its
//! own in every way. After each answer it appends one line to a file outside the store: the acknowledgement.
//! Now and then a worker is killed with the signal that nobody can catch, and started again.
//!
//! ```text
//!   parent ──► worker 0 … 7 ──► store ◄── reader 0, 1      afterwards: store ⊇ acknowledgements?
//!      │ kills      └──► acknowledged-<lane>
//! ```
//!
//! What is proved: every acknowledged operation is in the log, at that version, under that id; versions are
//! serial without a gap and each operation names the one before it; no error but a typed conflict was ever
//! seen; every entry that was to be added to a shared thread is there exactly once, though writers replayed
//! after conflicts and after being killed with an answer outstanding; readers never saw half a change.
//!
//! The control is a worker that acknowledges before it writes ([`Options::early`]). Killed in between, it has
//! promised an entry that is not there, and the check must find it missing.

mod acknowledgement;
mod check;
mod plan;
mod reader;
mod run;
mod worker;

pub use reader::read;
pub use run::{Options, Summary, run};
pub use worker::{Work, work};
