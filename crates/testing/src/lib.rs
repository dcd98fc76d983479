//! Runs the real `retake` program in a sandbox, for the tests of several crates. Not shipped.

pub mod interrupted_move;
mod program;
mod sandbox;

pub use program::{ProgramError, find as find_program, program};
pub use sandbox::{Output, Sandbox, free_port};
