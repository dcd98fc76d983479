//! The history of files: content of snapshots, changes between them, and their authors.

pub(crate) mod anchor;
pub(crate) mod blame;
pub(crate) mod captured;
pub(crate) mod changes;
pub(crate) mod file_changes;
pub(crate) mod file_history;
pub(crate) mod file_log;
pub(crate) mod file_operations;
pub(crate) mod git_branch;
pub(crate) mod listing;
pub(crate) mod snapshot;
pub(crate) mod touches;
