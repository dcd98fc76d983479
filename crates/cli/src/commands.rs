//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod import;
pub(crate) mod man;
pub(crate) mod project;
pub(crate) mod purge;
pub(crate) mod redact;
pub(crate) mod repair;
pub(crate) mod search;
pub(crate) mod usage;
pub(crate) mod verify;

pub(crate) mod entry;
pub(crate) mod thread;

pub(crate) mod blame;
pub(crate) mod clear;
pub(crate) mod context;
mod defaulted;
pub(crate) mod diff;
pub(crate) mod draft;
pub(crate) mod history;
pub(crate) mod jump;
pub(crate) mod log;
mod moving;
pub(crate) mod redo;
pub(crate) mod reset;
pub(crate) mod restore;
pub(crate) mod role;
pub(crate) mod run;
pub(crate) mod save;
mod seen;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod take;
pub(crate) mod tree;
pub(crate) mod truncate;
pub(crate) mod undo;
