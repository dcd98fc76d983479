//! Text descriptions of operations.

pub(crate) mod files;

pub(crate) use retake_render::{actor, describe, done, operation};
