//! The ledger: what agents do, beside the log of threads, in a file of its own.
//!
//! ```text
//!   turn       take ► what runs there, and what has arrived of the answer     gone when the turn ends
//!   letter     take ► what somebody wants of that turn                        gone when it is read
//!   comm       every request, answer and tool call                            only ever grows
//!   piece      hash ► part of a body                                          each part once
//!   approval   project ► calls that need not be asked about again
//! ```
//!
//! It is apart from the main database because none of it is history: it is written while a model talks, and that
//! must neither wait for those who change threads nor make them wait. What it holds of a conversation is also in
//! the log by the time it matters; losing the file loses the record of what was sent, and no thread.

mod approvals;
mod comms;
mod pieces;
mod turns;

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retake_model::id::{TakeId, TurnId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use comms::{Comm, CommFilter, NewComm};

use crate::budget::beside;
use crate::location::{backups, folders, free_name, ledger, open_private, private_file, private_folder};
use crate::{Store, StoreError};

/// The form of the file.
const VERSION: i64 = 1;

/// Longer than another program writes.
const LONG_WAIT: Duration = Duration::from_mins(1);

/// How long a lease is waited for that somebody may hold only to ask.
const PATIENCE: Duration = Duration::from_millis(50);

/// What SQLite says of a file that it finds nothing wrong with.
const SOUND: &str = "ok";

const SCHEMA: &str = "
    CREATE TABLE turn (
        take   BLOB PRIMARY KEY,
        record BLOB NOT NULL,
        digest INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE letter (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        take   BLOB NOT NULL,
        record BLOB NOT NULL,
        digest INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX letter_take ON letter (take);

    CREATE TABLE comm (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        thread BLOB NOT NULL,
        take   BLOB NOT NULL,
        time   INTEGER NOT NULL,
        kind   TEXT NOT NULL,
        facts  TEXT NOT NULL,               -- JSON
        pieces BLOB NOT NULL,               -- hashes, one after another
        digest INTEGER NOT NULL             -- of the facts and the pieces
    ) STRICT;
    CREATE INDEX comm_thread ON comm (thread, number);

    CREATE TABLE piece (
        hash BLOB PRIMARY KEY,
        body BLOB NOT NULL                  -- zstd
    ) STRICT;

    CREATE TABLE approval (
        project     BLOB NOT NULL,
        fingerprint BLOB NOT NULL,
        facts       TEXT NOT NULL,          -- what was allowed, for people
        time        INTEGER NOT NULL,
        PRIMARY KEY (project, fingerprint)
    ) STRICT, WITHOUT ROWID;";

/// The ledger of a store, open.
#[derive(Debug)]
pub struct Ledger {
    connection: Mutex<Connection>,
}

/// A take that nobody else runs a turn in while this is held.
#[derive(Debug)]
pub struct TurnLease {
    // The system lets go of the lock when the file is closed, also when the process dies.
    _file: File,
}

/// A turn, or a program that was let loose on a folder, that is alive as long as this is held.
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
    /// Opens the ledger, making it if there is none.
    pub fn ledger(&self) -> Result<Ledger, StoreError> {
        let path = ledger(&self.folder);
        private_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(LONG_WAIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let opened = Ledger { connection: Mutex::new(connection) };
        opened.prepare()?;
        Ok(opened)
    }

    /// The ledger, if there is one.
    pub fn existing_ledger(&self) -> Result<Option<Ledger>, StoreError> {
        if ledger(&self.folder).exists() { self.ledger().map(Some) } else { Ok(None) }
    }

    /// What is wrong with the ledger; `None` if nothing is, or if there is none.
    pub fn ledger_problem(&self) -> Option<String> {
        let sound = self.existing_ledger().and_then(|ledger| match ledger {
            Some(ledger) => {
                let check = "PRAGMA quick_check(1)";
                Ok(ledger.connection().query_row(check, [], |row| row.get::<_, String>(0))?)
            }
            None => Ok(SOUND.to_owned()),
        });
        match sound {
            Ok(said) if said == SOUND => None,
            Ok(said) => Some(format!("the ledger of what was said to models: {said}")),
            Err(error) => Some(format!("the ledger of what was said to models: {error}")),
        }
    }

    /// Puts a ledger aside that is damaged, so that the next turn begins a new one; says where it is kept. No thread is
    /// lost by it. Nobody else may be using it.
    pub fn set_ledger_aside(&self) -> Result<Option<PathBuf>, StoreError> {
        if self.ledger_problem().is_none() {
            return Ok(None);
        }
        let (path, place) = (ledger(&self.folder), backups(&self.folder));
        private_folder(&place)?;
        let kept = free_name(&place, |number| format!("ledger-{number}.db"));
        let moved = |from: PathBuf, to: &PathBuf| {
            std::fs::rename(&from, to).map_err(|error| StoreError::File { path: from, error })
        };
        moved(path.clone(), &kept)?;
        for ending in ["-wal", "-shm"] {
            let left = beside(&path, ending);
            if left.exists() {
                moved(left, &beside(&kept, ending))?;
            }
        }
        Ok(Some(kept))
    }

    /// Says that a turn is alive, to everybody who asks, until it is let go of or the process dies.
    pub fn keep_alive(&self, turn: TurnId) -> Result<Alive, StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{turn}.alive"));
        let file = open_private(&path)?;
        // Nobody else holds it but one who asks at this very moment.
        file.lock().map_err(|error| StoreError::File { path: path.clone(), error })?;
        Ok(Alive { path, _file: file })
    }

    /// Whether somebody keeps a turn alive.
    pub fn is_alive(&self, turn: TurnId) -> Result<bool, StoreError> {
        let path = folders(&self.folder).join(format!("{turn}.alive"));
        match File::open(&path) {
            Ok(file) => Ok(matches!(file.try_lock(), Err(TryLockError::WouldBlock))),
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

    /// Whether a turn runs in a take, in whatever process.
    pub fn turn_runs(&self, take: TakeId) -> Result<bool, StoreError> {
        let path = folders(&self.folder).join(format!("{take}.turn"));
        match File::open(&path) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }
}

impl Ledger {
    fn prepare(&self) -> Result<(), StoreError> {
        let connection = self.connection();
        match version(&connection)? {
            VERSION => return Ok(()),
            0 => {}
            found => {
                return Err(StoreError::Damaged(format!(
                    "ledger.db is of version {found}, and this program knows {VERSION}"
                )));
            }
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        // Another program may have been quicker.
        if version(&transaction)? == 0 {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        Ok(transaction.commit()?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        let changed = change(&transaction)?;
        transaction.commit()?;
        Ok(changed)
    }
}

fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use retake_model::id::{TakeId, TurnId};

    use crate::Store;

    #[test]
    fn a_ledger_that_is_damaged_is_noticed_and_put_aside() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(store.ledger_problem(), None);
        drop(store.ledger().expect("a ledger"));
        assert_eq!(store.ledger_problem(), None);
        assert_eq!(store.set_ledger_aside().expect("it is asked"), None);
        std::fs::write(folder.path().join("ledger.db"), [7; 8192]).expect("it is ours");
        assert!(store.ledger_problem().is_some());
        let kept = store.set_ledger_aside().expect("it is moved").expect("it was damaged");
        assert!(kept.exists());
        store.ledger().expect("a new one");
        assert_eq!(store.ledger_problem(), None);
    }

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
