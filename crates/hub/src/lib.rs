//! The server that threads sync to.
//!
//! ```text
//!   http       routes, limits, streams              no rule of its own
//!     │
//!   service    bytes first, then rows
//!     │
//!   access     who may do what ──► threads, spaces, links, …      take only what `access` authorized
//!     │                              │
//!     └───────────────────────── database (SQLite or Postgres), store (a folder or a bucket)
//! ```
//!
//! The hub orders bundles and decides who reads them. It does not look into them, except for a redaction. All state is in
//! the database and the store, so that any number of processes can share them.
//!
//! Invariants:
//! 1. A thread has one head, which only `UPDATE … WHERE head = expected` moves.
//! 2. The ranges of its bundles tile the versions from 1 on, and each bundle names the head before it.
//! 3. Bytes are durable before a row refers to them.
//! 4. Nothing is addressed by its hash alone, and what is absent looks like what is forbidden.
//! 5. The position of an event in the feed of a space comes from a row, so that readers skip none.

pub mod access;
pub mod accounts;
pub mod audit;
pub mod database;
pub mod error;
pub mod feed;
pub mod http;
pub mod links;
pub mod packs;
mod page;
mod redaction;
pub mod search;
pub mod secret;
pub mod service;
pub mod spaces;
pub mod threads;
pub mod uploads;
