//! Power cuts under the real program, on a real file system.
//!
//! ```text
//!   script ─► a command, stopped at system call n ─► the file system is shut down ─► unmount ─► mount
//!                                                                                                 │
//!                            conversation and files both before or both after; nothing acknowledged is lost ◄────┘
//! ```
//!
//! The process is stopped before the cut, including all threads, so that nothing is acknowledged after it. Unlike the
//! simulated cut of [`faults`](crate::faults), this also loses directory entries, in any order the file system chooses.
//! In the control, syncs do nothing.

mod disk;
mod run;

pub use disk::Disk;
pub use run::{CutsPlan, CutsSummary, SyncBehavior, cut};
