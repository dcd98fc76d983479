//! Liveness: file locks that the operating system releases when a process dies.
//!
//! ```text
//!   folders/<turn>.alive    a running turn, or a tool that may change a folder
//!   folders/<name>.alive    a server, by the hash of its name
//!   folders/<take>.turn     the one turn of a take
//! ```

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use retake_model::id::{RequestId, TakeId, TurnId};
use retake_model::turn::RunningTurn;

use super::RuntimeDatabase;
use crate::location::{folders, open_private, private_folder};
use crate::{Store, StoreError};

/// How long to wait for a lease that another process may hold only to probe it.
const LEASE_WAIT: Duration = Duration::from_millis(50);

/// Ensures that a take has at most one running turn.
#[derive(Debug)]
pub struct TurnLease {
    // The operating system releases the lock when the file is closed, also after a crash.
    _file: File,
}

/// Proves that a turn, a tool or a server is alive.
#[derive(Debug)]
pub struct LivenessLock {
    path: PathBuf,
    _file: File,
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // A missing file means the same as an unlocked one.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Store {
    /// Marks a turn as alive until the lock is dropped or the process dies.
    pub fn lock_alive(&self, turn: TurnId) -> Result<LivenessLock, StoreError> {
        self.lock_file(&turn.to_string())
    }

    /// Whether some process keeps a turn alive.
    pub fn is_alive(&self, turn: TurnId) -> Result<bool, StoreError> {
        self.turn_leases().is_alive(turn)
    }

    /// Marks a named process as alive: a server whose requests no other process takes over meanwhile.
    pub fn lock_alive_as(&self, name: &str) -> Result<LivenessLock, StoreError> {
        self.lock_file(&file_stem_of(name))
    }

    /// Whether a process with this name is alive.
    pub fn is_alive_as(&self, name: &str) -> Result<bool, StoreError> {
        self.turn_leases().is_locked(&format!("{}.alive", file_stem_of(name)))
    }

    fn lock_file(&self, stem: &str) -> Result<LivenessLock, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{stem}.alive"));
        let file = open_private(&path)?;
        // Only a process that probes the lock can hold it now.
        file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
        Ok(LivenessLock { path, _file: file })
    }

    /// Leases a take for its only turn; `None` if another turn runs, in any process.
    pub fn lease_turn(&self, take: TakeId) -> Result<Option<TurnLease>, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{take}.turn"));
        let file = open_private(&path)?;
        let patient_until = Instant::now() + LEASE_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(TurnLease { _file: file })),
                // A probe holds the lock only for a moment.
                Err(TryLockError::WouldBlock) if Instant::now() < patient_until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(StoreError::File { path, error }),
            }
        }
    }

    /// All recorded turns, each with whether a process runs it. A turn without a process is left over from a crash.
    pub fn running_turns(
        &self,
        runtime_database: &RuntimeDatabase,
    ) -> Result<Vec<(RunningTurn, bool)>, StoreError> {
        let mut found = Vec::new();
        for turn in runtime_database.turns()? {
            let runs = self.is_turn_running(turn.take)?;
            found.push((turn, runs));
        }
        Ok(found)
    }

    /// Whether a turn runs in a take, in any process.
    pub fn is_turn_running(&self, take: TakeId) -> Result<bool, StoreError> {
        self.turn_leases().is_turn_running(take)
    }

    /// Probes for running turns without the store, for use inside a write.
    pub fn turn_leases(&self) -> TurnLeases {
        TurnLeases { place: folders(&self.folder) }
    }
}

/// Probes which turns are running.
#[derive(Clone, Debug)]
pub struct TurnLeases {
    place: PathBuf,
}

impl TurnLeases {
    /// Whether a turn runs in a take, in any process.
    pub fn is_turn_running(&self, take: TakeId) -> Result<bool, StoreError> {
        self.is_locked(&format!("{take}.turn"))
    }

    /// Whether some process keeps a turn alive.
    pub fn is_alive(&self, turn: TurnId) -> Result<bool, StoreError> {
        self.is_locked(&format!("{turn}.alive"))
    }

    fn is_locked(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.place.join(name);
        // A shared lock, so that two probes do not mistake each other for the owner.
        match File::open(&path) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }
}

/// Any text as part of a file name.
fn file_stem_of(name: &str) -> String {
    RequestId::of(name.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use retake_model::id::{TakeId, TurnId};

    use crate::Store;

    #[test]
    fn a_turn_is_alive_while_its_lock_is_held() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let turn = TurnId::from_bytes([7; 16]);
        let alive = || store.is_alive(turn).expect("a probe");
        assert!(!alive());
        let lock = store.lock_alive(turn).expect("a lock file");
        assert!(alive());
        drop(lock);
        assert!(!alive());
        let name = "../a server, any text";
        let served = store.lock_alive_as(name).expect("a lock file");
        assert!(store.is_alive_as(name).expect("a probe"));
        assert!(!store.is_alive_as("another").expect("a probe"));
        drop(served);
        assert!(!store.is_alive_as(name).expect("a probe"));
    }

    #[test]
    fn a_take_has_one_lease_at_a_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (one, other) =
            (Store::open(folder.path()).expect("a store"), Store::open(folder.path()).expect("a store"));
        let take = TakeId::from_bytes([7; 16]);
        let lock = one.lease_turn(take).expect("a lock file").expect("a free take");
        assert!(other.lease_turn(take).expect("a lock file").is_none());
        assert!(other.lease_turn(TakeId::from_bytes([8; 16])).expect("a lock file").is_some());
        drop(lock);
        assert!(other.lease_turn(take).expect("a lock file").is_some());
    }
}
