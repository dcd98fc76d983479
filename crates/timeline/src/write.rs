//! Changes to threads: one change, moves along the log, threads that begin or are promoted, and what threads share.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod entry_display;
pub(crate) mod moves;
pub(crate) mod presets;
pub(crate) mod project;
pub(crate) mod promote;
pub(crate) mod redaction;
pub(crate) mod shared;
