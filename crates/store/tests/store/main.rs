//! The public interface of the store: publishing, reading, damage, repair, purge.

mod backup;
mod bundles;
mod collect;
mod files;
mod flips;
mod lost_log_end;
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
