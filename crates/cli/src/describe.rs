//! Text descriptions of operations.

pub(crate) mod files;

pub(crate) use retake_words::{actor, done, operation, story};
