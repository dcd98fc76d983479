//! Faults in a child process: killed, cut from power or refused at a chosen system call.
//!
//! The faults are made by a small C library (`shim/faults.c`, whose header says exactly what they are) that the
//! dynamic linker loads into the child before everything else. This module compiles it and says in types what
//! the library takes from its environment.
//!
//! ```text
//!   Shim::build ──► faults-<hash>.so     Faults::under(root).die_at(7, Death::Cut)
//!                           └──────────────────────────┴──► attach(&mut Command) ──► run ──► Report::read
//! ```
//!
//! A run without faults first tells how many points there are ([`Report::calls`]); then one run per point.

mod build;
mod faults;
mod report;

pub use build::{Shim, ShimError};
pub use faults::{Class, Death, Failure, Faults, Times};
pub use report::Report;
