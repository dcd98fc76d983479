//! One folder: its git facts, its snapshots, and what changes beside them.

mod git;
mod snapshot;
mod snapshot_trust;
mod support;
mod watch;
