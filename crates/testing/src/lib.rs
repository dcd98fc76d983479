//! Equipment of tests and campaigns. No shipped crate contains it: they use it as a dev-dependency.

pub mod fault_server;
pub mod projection;
