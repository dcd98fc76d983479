//! Content-addressed objects: in the database, in packs, and where each one is.

pub(crate) mod cache;
pub(crate) mod index;
pub(crate) mod packs;
pub(crate) mod read_write;
pub(crate) mod seal;
