//! Who is alive: locks that the system lets go of when a process dies.
//!
//! ```text
//!   folders/<turn>.alive    a turn, or a program on a folder, that somebody runs
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

/// How long a lease is waited for that somebody may hold only to ask.
const PATIENCE: Duration = Duration::from_millis(50);

/// A take that nobody else runs a turn in while this is held.
#[derive(Debug)]
pub struct TurnLease {
    // The system lets go of the lock when the file is closed, also when the process dies.
    _file: File,
}

/// A turn, a program that was let loose on a folder, or a server, that is alive as long as this is held.
#[derive(Debug)]
pub struct Alive {
    path: PathBuf,
    _file: File,
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Whoever asks finds no file, which means the same as one that nobody holds.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Store {
    /// Says that a turn is alive, to everybody who asks, until it is let go of or the process dies.
    pub fn keep_alive(&self, turn: TurnId) -> Result<Alive, StoreError> {
        self.hold(&turn.to_string())
    }

    /// Whether somebody keeps a turn alive.
    pub fn is_alive(&self, turn: TurnId) -> Result<bool, StoreError> {
        self.is_held(&turn.to_string())
    }

    /// Says that something with a name of its own is alive: a server, whose requests nobody else takes over meanwhile.
    pub fn keep_alive_as(&self, name: &str) -> Result<Alive, StoreError> {
        self.hold(&named(name))
    }

    /// Whether somebody keeps something alive under that name.
    pub fn is_alive_as(&self, name: &str) -> Result<bool, StoreError> {
        self.is_held(&named(name))
    }

    fn hold(&self, stem: &str) -> Result<Alive, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{stem}.alive"));
        let file = open_private(&path)?;
        // Nobody else holds it but one who asks at this very moment.
        file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
        Ok(Alive { path, _file: file })
    }

    fn is_held(&self, stem: &str) -> Result<bool, StoreError> {
        let path = folders(&self.folder).join(format!("{stem}.alive"));
        match File::open(&path) {
            // Shared, so that two who ask at once do not take each other for the one who is asked about.
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }

    /// The only turn of a take, for as long as it is held; `None` if another one runs, in whatever process.
    pub fn lease_turn(&self, take: TakeId) -> Result<Option<TurnLease>, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{take}.turn"));
        let file = open_private(&path)?;
        let patient_until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(TurnLease { _file: file })),
                // Whoever only asks holds it for a moment.
                Err(TryLockError::WouldBlock) if Instant::now() < patient_until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(StoreError::File { path, error }),
            }
        }
    }

    /// All turns that are written down in the ledger, each with whether some process runs it: one that nobody does was
    /// left by one that died.
    pub fn running(&self, ledger: &Ledger) -> Result<Vec<(RunningTurn, bool)>, StoreError> {
        let mut found = Vec::new();
        for turn in ledger.turns()? {
            let runs = self.turn_runs(turn.take)?;
            found.push((turn, runs));
        }
        Ok(found)
    }

    /// Whether a turn runs in a take, in whatever process.
    pub fn turn_runs(&self, take: TakeId) -> Result<bool, StoreError> {
        self.leases().turn_runs(take)
    }

    /// Who can be asked which turns run, also where the store itself must not be held: inside a write.
    pub fn leases(&self) -> Leases {
        Leases { place: folders(&self.folder) }
    }
}

/// Knows which turns run.
#[derive(Clone, Debug)]
pub struct Leases {
    place: PathBuf,
}

impl Leases {
    /// Whether a turn runs in a take, in whatever process.
    pub fn turn_runs(&self, take: TakeId) -> Result<bool, StoreError> {
        let path = self.place.join(format!("{take}.turn"));
        match File::open(&path) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }
}

/// A name of any text, as part of the name of a file.
fn named(name: &str) -> String {
    RequestId::of(name.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use retake_model::id::{TakeId, TurnId};

    use crate::Store;

    #[test]
    fn a_turn_is_alive_while_somebody_holds_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let turn = TurnId::from_bytes([7; 16]);
        let alive = || store.is_alive(turn).expect("it can be asked");
        assert!(!alive());
        let held = store.keep_alive(turn).expect("a lock file");
        assert!(alive());
        drop(held);
        assert!(!alive());
        let name = "../a server, any text";
        let served = store.keep_alive_as(name).expect("a lock file");
        assert!(store.is_alive_as(name).expect("it can be asked"));
        assert!(!store.is_alive_as("another").expect("it can be asked"));
        drop(served);
        assert!(!store.is_alive_as(name).expect("it can be asked"));
    }

    #[test]
    fn a_take_has_one_lease_at_a_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (one, other) =
            (Store::open(folder.path()).expect("a store"), Store::open(folder.path()).expect("a store"));
        let take = TakeId::from_bytes([7; 16]);
        let held = one.lease_turn(take).expect("a lock file").expect("it is free");
        assert!(other.lease_turn(take).expect("a lock file").is_none());
        assert!(other.lease_turn(TakeId::from_bytes([8; 16])).expect("a lock file").is_some());
        drop(held);
        assert!(other.lease_turn(take).expect("a lock file").is_some());
    }
}
