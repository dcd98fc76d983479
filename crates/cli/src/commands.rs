//! The commands, one file each.

pub(crate) mod entry;
pub(crate) mod thread;

pub(crate) mod take;
pub(crate) mod tree;
