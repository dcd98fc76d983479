//! The history of files: what snapshots hold, what changed between them, and who changed it.

pub(crate) mod anchor;
pub(crate) mod blame;
pub(crate) mod captured;
pub(crate) mod changes;
pub(crate) mod file_changes;
pub(crate) mod file_log;
pub(crate) mod file_operations;
pub(crate) mod listing;
pub(crate) mod touches;
