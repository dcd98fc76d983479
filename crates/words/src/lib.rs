//! What a terminal and a browser show alike: what happened, in words for people; and code, by what its words mean.

mod cleared;
pub mod code;
pub mod number;
mod operation;
pub mod story;

pub use cleared::cleared;
pub use operation::{actor, done, operation};
