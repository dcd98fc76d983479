//! Texts that the terminal and the browser share: descriptions of operations, numbers, and code tokens.

pub mod code;
pub mod describe;
pub mod number;
mod operation;
mod reset;

pub use operation::{actor, done, operation};
pub use reset::describe_reset;
