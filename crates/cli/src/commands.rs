//! The commands, one file each.

pub(crate) mod entry;
pub(crate) mod thread;
