//! Retake's pure core: immutable data, and functions from one state to the next.
//!
//! Everything a user can change is one immutable, content-addressed [`state`]; every change is one
//! [`operation`] from a state to the next. Nothing here reads a clock, rolls dice, opens a file or talks
//! to a network: time and randomness come in as arguments (see [`id::Fresh`]), objects come in through
//! [`object::Objects`].
//!
//! ```text
//!   command ──► apply(state, command) ──► state' + what happened (operation kind)
//!                      │ reads and adds
//!                      ▼
//!        objects: entry versions, list nodes, takes, states   (named by the hash of their bytes)
//! ```

pub mod content;
pub mod id;
pub mod list;
pub mod object;
pub mod project;
pub mod time;
