//! Operations in words, for people at a terminal.

pub(crate) mod files;

pub(crate) use retake_words::{actor, done, operation, story};
