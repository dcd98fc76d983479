//! Git facts, snapshots and watchers of one folder.

mod git;
mod replace;
mod snapshot;
mod snapshot_trust;
mod support;
mod watch;
