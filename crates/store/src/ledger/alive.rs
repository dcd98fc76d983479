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

use crate::location::{folders, open_private, private_folder};
use crate::{Ledger, Store, StoreError};

/// How long to wait for a lease that another process may hold only to probe it.
const PATIENCE: Duration = Duration::from_millis(50);

/// Ensures that a take has at most one running turn.
#[derive(Debug)]
pub struct TurnLease {
    // The operating system releases the lock when the file is closed, also after a crash.
    _file: File,
}

/// Proves that a turn, a tool or a server is alive.
#[derive(Debug)]
pub struct Alive {
    path: PathBuf,
    _file: File,
}

impl Drop for Alive {
    fn drop(&mut self) {
        // A missing file means the same as an unlocked one.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Store {
    /// Marks a turn as alive until the lock is dropped or the process dies.
    pub fn keep_alive(&self, turn: TurnId) -> Result<Alive, StoreError> {
        self.hold(&turn.to_string())
    }

    /// Whether some process keeps a turn alive.
    pub fn is_alive(&self, turn: TurnId) -> Result<bool, StoreError> {
        self.is_held(&turn.to_string())
    }

    /// Marks a named process as alive: a server whose requests no other process takes over meanwhile.
    pub fn keep_alive_as(&self, name: &str) -> Result<Alive, StoreError> {
        self.hold(&named(name))
    }

    /// Whether a process with this name is alive.
    pub fn is_alive_as(&self, name: &str) -> Result<bool, StoreError> {
        self.is_held(&named(name))
    }

    fn hold(&self, stem: &str) -> Result<Alive, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{stem}.alive"));
        let file = open_private(&path)?;
        // Only a process that probes the lock can hold it now.
        file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
        Ok(Alive { path, _file: file })
    }

    fn is_held(&self, stem: &str) -> Result<bool, StoreError> {
        let path = folders(&self.folder).join(format!("{stem}.alive"));
        match File::open(&path) {
            // A shared lock, so that two probes do not mistake each other for the owner.
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }

    /// Leases a take for its only turn; `None` if another turn runs, in any process.
    pub fn lease_turn(&self, take: TakeId) -> Result<Option<TurnLease>, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{take}.turn"));
        let file = open_private(&path)?;
        let patient_until = Instant::now() + PATIENCE;
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
    pub fn running(&self, ledger: &Ledger) -> Result<Vec<(RunningTurn, bool)>, StoreError> {
        let mut found = Vec::new();
        for turn in ledger.turns()? {
            let runs = self.turn_runs(turn.take)?;
            found.push((turn, runs));
        }
        Ok(found)
    }

    /// Whether a turn runs in a take, in any process.
    pub fn turn_runs(&self, take: TakeId) -> Result<bool, StoreError> {
        self.leases().turn_runs(take)
    }

    /// Probes for running turns without the store, for use inside a write.
    pub fn leases(&self) -> Leases {
        Leases { place: folders(&self.folder) }
    }
}

/// Probes which turns are running.
#[derive(Clone, Debug)]
pub struct Leases {
    place: PathBuf,
}

impl Leases {
    /// Whether a turn runs in a take, in any process.
    pub fn turn_runs(&self, take: TakeId) -> Result<bool, StoreError> {
        let path = self.place.join(format!("{take}.turn"));
        match File::open(&path) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }
}

/// Any text as part of a file name.
fn named(name: &str) -> String {
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
        let held = store.keep_alive(turn).expect("a lock file");
        assert!(alive());
        drop(held);
        assert!(!alive());
        let name = "../a server, any text";
        let served = store.keep_alive_as(name).expect("a lock file");
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
        let held = one.lease_turn(take).expect("a lock file").expect("a free take");
        assert!(other.lease_turn(take).expect("a lock file").is_none());
        assert!(other.lease_turn(TakeId::from_bytes([8; 16])).expect("a lock file").is_some());
        drop(held);
        assert!(other.lease_turn(take).expect("a lock file").is_some());
    }
}
