//! Syncs the write-ahead log after a commit, when the next writer is already at work.
//!
//! ```text
//!   process 1   lock ─ commit ─ unlock ─ sync ───────────► answer
//!   process 2                    lock ─ commit ─ unlock ─ sync ───────────► answer
//! ```
//!
//! A commit appends to the log. The sync that follows covers it and every commit before it, of all processes, so that no
//! acknowledged change depends on one that can still be lost. Other readers see a change while it is being synced; the
//! one who follows the log ([`Tail`](crate::Tail)) syncs it first.
//!
//! The writers of a process wait for each other here: one sync covers all commits that precede its start.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::StoreError;
use crate::location::write_ahead_log;

/// The write-ahead log. Every process opens it before it writes, so that a failed sync of any process is reported to
/// all of them.
#[derive(Clone)]
pub(crate) struct WalFile(Arc<File>);

impl WalFile {
    /// Opens the log of a database that this process has open.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = write_ahead_log(folder);
        match File::open(&path) {
            Ok(file) => Ok(Self(Arc::new(file))),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }
}

/// A commit that may not be on disk yet.
#[must_use = "it is not durable before it is synced"]
pub(crate) struct Commit {
    wal: WalFile,
    number: u64,
    /// The end of the log of operations.
    pub(crate) sequence: i64,
}

/// The syncs of this process.
#[derive(Default)]
pub(crate) struct WalSync {
    /// The number of commits.
    commits: AtomicU64,
    state: Mutex<SyncState>,
    /// Notified after each sync. A lock held during the sync would not do: whoever ends one, writes again and locks it
    /// again, before those that were covered wake up to see it.
    ended: Condvar,
}

#[derive(Default)]
struct SyncState {
    /// The number of commits that are on disk.
    synced: u64,
    /// Whether a sync is running.
    running: bool,
}

impl WalSync {
    /// Counts a commit, before the next one can begin.
    pub(crate) fn committed(&self, wal: &WalFile, sequence: i64) -> Commit {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        Commit { wal: wal.clone(), number, sequence }
    }

    /// Waits until a commit is on disk. After a failed sync nothing is known about later commits, and the system reports
    /// the failure only once: `refuse` must make `usable` fail.
    pub(crate) fn wait_for(
        &self,
        commit: &Commit,
        usable: impl Fn() -> Result<(), StoreError>,
        refuse: impl Fn(),
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        loop {
            if state.synced >= commit.number {
                return Ok(());
            }
            usable().map_err(|_| StoreError::OutcomeUnknown)?;
            if !state.running {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.running = true;
        let covered = self.commits.load(Ordering::SeqCst);
        drop(state);
        let outcome = commit.wal.0.sync_data();
        let mut state = self.state();
        state.running = false;
        match &outcome {
            Ok(()) => state.synced = covered,
            Err(_) => refuse(),
        }
        drop(state);
        self.ended.notify_all();
        outcome.map_err(|_| StoreError::OutcomeUnknown)
    }

    fn state(&self) -> MutexGuard<'_, SyncState> {
        // Nothing that can panic runs while this is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Syncs what is in the log now, so that nothing that was read from it can be lost any more.
pub(crate) fn sync_log(folder: &Path) -> Result<(), StoreError> {
    let path = write_ahead_log(folder);
    match File::open(&path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::File { path, error }),
        // Without a log, everything is in the database.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A file whose syncs succeed, and one whose syncs fail.
    fn files() -> (WalFile, WalFile) {
        let good = tempfile::tempfile().expect("a temporary file");
        let broken = File::open("/dev/null").expect("a device");
        (WalFile(Arc::new(good)), WalFile(Arc::new(broken)))
    }

    #[test]
    fn one_sync_covers_all_earlier_commits() {
        let (good, broken) = files();
        let sync = WalSync::default();
        let (first, second, third) =
            (sync.committed(&broken, 1), sync.committed(&good, 2), sync.committed(&broken, 3));
        let wait = |commit: &Commit| sync.wait_for(commit, || Ok(()), || {}).is_ok();
        assert!(wait(&second));
        // Syncs of their own would fail.
        assert!(wait(&first) && wait(&third));
        assert!(!wait(&sync.committed(&broken, 4)), "control: a later commit is synced again");
    }

    #[test]
    fn after_a_failed_sync_no_later_commit_is_acknowledged() {
        let (good, broken) = files();
        let sync = WalSync::default();
        let refused = Cell::new(false);
        let usable = || if refused.get() { Err(StoreError::Poisoned) } else { Ok(()) };
        let wait = |commit: &Commit| sync.wait_for(commit, usable, || refused.set(true));
        assert!(wait(&sync.committed(&good, 1)).is_ok(), "control");
        let (failed, next) = (sync.committed(&broken, 2), sync.committed(&good, 3));
        assert!(matches!(wait(&failed), Err(StoreError::OutcomeUnknown)));
        assert!(refused.get());
        assert!(matches!(wait(&next), Err(StoreError::OutcomeUnknown)), "its sync could succeed falsely");
    }
}
