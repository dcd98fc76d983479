//! Proof that Retake keeps its promises: harnesses that break the world around the real programs.
//!
//! A harness runs a program with a fault at every point where one can happen, and looks at what is left. Each
//! has a control, a run in which the promise is broken on purpose, because a harness that cannot fail proves
//! nothing.

pub mod shim;
