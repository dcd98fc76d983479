//! Export and import of threads.

pub(crate) mod export;
pub(crate) mod import;
