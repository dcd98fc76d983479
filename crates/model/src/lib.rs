//! Retake's pure core: immutable data, and functions from one state to the next.
//!
//! Everything a user can change is one immutable, content-addressed [`state`]; every change is one
//! [`operation`] from a state to the next. Nothing here reads a clock, generates random numbers, opens a
//! file or uses the network: time and randomness are arguments (see [`id::IdSource`]), and objects come
//! through [`object::Objects`].
//!
//! ```text
//!   command ──► apply(state, command) ──► state' + operation kind
//!                      │ reads and adds
//!                      ▼
//!        objects: entry versions, list nodes, takes, states   (named by the hash of their bytes)
//! ```

#![warn(missing_docs)]

pub mod agent;
pub mod approval;
mod boundary;
pub mod check;
pub mod command;
pub mod content;
pub mod diff;
pub mod entry;
pub mod environment;
pub mod history;
pub mod id;
pub mod intent;
pub mod json;
pub mod limits;
pub mod list;
pub mod merge;
pub mod name;
pub mod object;
pub mod operation;
pub mod path;
pub mod project;
pub mod projection;
pub mod rebase;
pub mod reference;
pub mod replay;
pub mod replica;
#[cfg(feature = "schema")]
mod schema;
pub mod sealed;
pub mod settings;
pub mod sharing;
pub mod state;
pub mod summary;
pub mod take;
pub mod time;
pub mod tree;
pub mod turn;
