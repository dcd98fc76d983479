//! Bytes flipped or cut in the database and its write-ahead log: detected or harmless, never shown as valid content.
//!
//! A store with some history is built, once with a part of it in the write-ahead log and once checkpointed. Then copies
//! are damaged at random positions, opened, and read completely: every list, every row, every version of every thread,
//! every page, every log. Each result must be an error or the original content.
//!
//! ```text
//!   store ──► copy ──► damage ──► open ──► read everything ──► whole │ noticed │ older │ SILENT
//! ```
//!
//! *Older* is how SQLite handles a damaged log: the log ends before the damage, and everything is as it was at an
//! earlier commit. SQLite cannot distinguish this from a commit that never happened. If acknowledged operations are
//! missing, the store detects it; if only other data is lost, such as display settings, it is counted separately.
//!
//! If reading is silent about damage, `verify` must report it.
//!
//! The control forges a row of the index together with its digest, which no check can detect: the comparison must
//! report it.

mod build;
mod compare;
mod control;
mod damage;
mod everything;
mod run;

pub use control::forged;
pub use run::{Options, Summary, run, survey};
