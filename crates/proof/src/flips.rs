//! Bytes flipped or cut in the database and its log: noticed or harmless, never shown as if they were whole.
//!
//! A store with some history is built, once with part of it still in the write-ahead log and once settled. Then, again and again, a
//! copy is damaged at a random place, opened, and everything in it is read: every list, every row, every
//! version of every thread, every page, every log. Each thing read must be an error or exactly what it was.
//!
//! ```text
//!   store ──► copy ──► damage ──► open ──► read everything ──► whole │ noticed │ older │ SILENT
//! ```
//!
//! *Older* is what SQLite makes of a damaged log: the log ends before the damage, and everything is exactly as
//! it was at an earlier commit. SQLite cannot tell this from a commit that never was. Where the store knows
//! better, because operations that were acknowledged are missing, it is noticed; where only something was lost
//! that is no operation, such as how an entry is shown, it is counted apart.
//!
//! Whatever is silent while reading is looked at once more with `verify`, which must name it.
//!
//! The control forges a row of the index together with its guard, which no check can notice, and compares: the
//! difference must be reported.

mod build;
mod compare;
mod control;
mod damage;
mod everything;
mod run;

pub use control::forged;
pub use run::{Options, Summary, run, survey};
