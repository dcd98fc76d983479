//! Rows derived from the log or kept beside it: threads, takes, projects, folders, settings.

pub(crate) mod derive;
pub(crate) mod facets;
pub(crate) mod folders;
pub(crate) mod presentation;
pub(crate) mod project_usage;
pub(crate) mod projects;
pub(crate) mod row_checksums;
pub(crate) mod shared_settings;
pub(crate) mod takes;
pub(crate) mod thread_list;
pub(crate) mod threads;
