//! Eight processes on one store, some killed at random: acknowledged operations are durable.
//!
//! The program runs itself as workers and readers. A worker has one or more lanes, which write concurrently; each lane
//! adds entries to shared threads and changes its own thread in every way. After each answer it appends an
//! acknowledgement to a file outside the store. Some workers are killed with SIGKILL and restarted.
//!
//! ```text
//!   parent ──► worker 0 … 7 ──► store ◄── reader 0, 1      afterwards: store ⊇ acknowledgements?
//!      │ kills      └──► acknowledged-<lane>
//! ```
//!
//! Checks: every acknowledged operation is in the log, with its version and id; versions are serial without gaps, and
//! each operation names its predecessor; no error except a typed conflict occurs; every entry of a shared thread exists
//! exactly once, although writers retry after conflicts and kills; readers never see a partial change.
//!
//! In the control, a worker acknowledges before it writes ([`Options::early`]). Killed in between, its entry is
//! missing, which the check must find.

mod acknowledgement;
mod check;
mod plan;
mod reader;
mod run;
mod worker;

pub use reader::read;
pub use run::{Options, Summary, run};
pub use worker::{WorkerPlan, work};
