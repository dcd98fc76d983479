//! Faults in a child process: killed, power cut or failed at a chosen system call.
//!
//! A small C library (`shim/faults.c`, whose header defines them) injects the faults; the dynamic linker preloads it
//! into the child. This module compiles the library and has types for its environment variables.
//!
//! ```text
//!   Shim::build ──► faults-<hash>.so     Faults::under(root).die_at(7, Death::Cut)
//!                           └──────────────────────────┴──► attach(&mut Command) ──► run ──► Report::read
//! ```
//!
//! A run without faults first counts the points ([`Report::calls`]); then follows one run per point.

mod build;
mod faults;
mod report;

pub use build::{Shim, ShimError};
pub use faults::{CallClass, Faults, InjectedError, KillMode, Repeat};
pub use report::Report;
