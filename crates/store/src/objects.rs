//! Content-addressed objects: in the bundles of operations, in rows of their own, in packs, and where each one is.

pub(crate) mod bundle;
pub(crate) mod cache;
pub(crate) mod index;
pub(crate) mod packs;
pub(crate) mod read_write;
pub(crate) mod seal;
