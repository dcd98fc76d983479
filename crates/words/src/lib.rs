//! What happened, in words for people: the same words in a terminal and in a browser.

pub mod number;
mod operation;
pub mod story;

pub use operation::{actor, done, operation};
