//! Power cuts under the real program, on a real file system.
//!
//! ```text
//!   script ─► a command, stopped at system call n ─► the file system is shut down ─► unmount ─► mount
//!                                                                                                 │
//!                            both halves before, or both after; nothing acknowledged is lost ◄────┘
//! ```
//!
//! The process is stopped before the cut, all of its threads, so that nothing is acknowledged after it. Unlike
//! the simulated cut of [`faults`](crate::faults), names are lost here too, in whatever order the file system
//! likes. The control lets syncs lie.

mod disk;
mod run;

pub use disk::Disk;
pub use run::{Cuts, CutsPlan, Syncs, cut};
