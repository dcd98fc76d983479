//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod man;
pub(crate) mod project;

pub(crate) mod entry;
pub(crate) mod thread;
