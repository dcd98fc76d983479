//! Reading: views of threads and their history, search, and resolving what a person types.

pub(crate) mod compare_versions;
pub(crate) mod entry_history;
pub(crate) mod find;
pub(crate) mod paging;
pub(crate) mod pictures;
pub(crate) mod reader;
pub(crate) mod reset_summary;
pub(crate) mod revisions;
pub(crate) mod search;
pub(crate) mod tail;
pub(crate) mod thread_locations;
pub(crate) mod tree;
pub(crate) mod view;
