//! Texts that the terminal and the browser share: descriptions of operations, numbers, and code tokens.

mod cleared;
pub mod code;
pub mod number;
mod operation;
pub mod story;

pub use cleared::cleared;
pub use operation::{actor, done, operation};
