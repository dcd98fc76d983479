//! The agent: turns that run, stop, fail, retry and resume on the timeline.

pub mod approval;
pub mod cancel;
pub mod provider;
pub mod tools;
