//! Exchange of threads between machines.
//!
//! A thread travels as a row of [`bundle`]s: immutable slices of its log, each with the content that its operations need
//! first. `timeline` makes the operations of a bundle and takes those of others over; this crate is the form in between.
//!
//! ```text
//!   operations 1 … 16        17         18 … 20          one bundle each, named by the hash of its bytes
//!   [ bundle ]──────────►[ bundle ]──►[ bundle ]         each names the last operation before it
//! ```

pub mod bundle;
pub mod config;
pub mod engine;
pub mod links;
pub mod projects;
pub mod remote;
pub mod session;
pub mod status;
pub mod watch;
pub mod wire;
