//! The agent: turns that run, stop, fail, retry and resume on the timeline.

pub mod cancel;
#[doc(hidden)]
pub mod fault_server;
pub mod provider;
pub mod tools;
