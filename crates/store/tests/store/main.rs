//! The store as its callers see it: published, read back, damaged, mended, purged.

mod collect;
mod files;
mod flips;
mod lost_end;
mod migrate;
mod packs;
mod private;
mod publish;
mod purge;
mod repair;
mod search;
mod support;
mod verify;
mod writer;
