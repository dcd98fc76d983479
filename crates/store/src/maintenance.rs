//! Keeping a store sound and small: verify, repair, gc, purge, redact, backup.

pub(crate) mod backup;
pub(crate) mod budget;
pub(crate) mod bundles;
pub(crate) mod collect;
pub(crate) mod completeness;
pub(crate) mod erasure;
pub(crate) mod exclusive;
pub(crate) mod purge;
pub(crate) mod reachability;
pub(crate) mod redact;
pub(crate) mod repair;
pub(crate) mod salvage;
pub(crate) mod scan;
pub(crate) mod verify;
