//! Reading: views of threads and their history, search, and resolving names that users type.

pub(crate) mod compare_versions;
pub(crate) mod entries;
pub(crate) mod entry_history;
pub(crate) mod find;
pub(crate) mod history;
pub(crate) mod paging;
pub(crate) mod pictures;
pub(crate) mod project;
pub(crate) mod reader;
pub(crate) mod reset_summary;
pub(crate) mod revisions;
pub(crate) mod search;
pub(crate) mod sent;
pub(crate) mod settings;
pub(crate) mod tail;
pub(crate) mod thread_locations;
pub(crate) mod tree;
pub(crate) mod turns;
pub(crate) mod view;
