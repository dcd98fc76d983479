//! The runtime database: state of agents and servers, in a separate file.
//!
//! ```text
//!   turn       take ► running turn, and its partial answer      deleted when the turn ends
//!   letter     take ► message to that turn                      deleted when it is handled
//!   comm       trace: every request, response and tool call     append-only
//!   piece      hash ► part of a body                            deduplicated
//!   approval   project ► tool calls that are always allowed
//!   request    idempotency key ► request and answer             expires
//!   ticket     hash ► single-use login
//!   visitor    hash ► browser session
//!   typed      project ► lines typed in `retake chat`           the newest 1,000 of each project
//! ```
//!
//! None of this is history. It is written while a model streams its answer, and must neither wait for changes to
//! threads nor delay them. Everything it records of a conversation is also in the log by the time it matters: losing
//! the file loses the trace, but no thread.

mod approvals;
mod browser_sessions;
mod erase;
mod group_commit;
mod idempotency_keys;
mod liveness;
mod pieces;
mod running_turns;
mod trace;
mod typed_lines;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use idempotency_keys::RequestState;
pub use liveness::{LivenessLock, TurnLease, TurnLeases};
pub use running_turns::{DecisionOutcome, RuntimeStamp};
pub use trace::{NewTraceRecord, TraceFilter, TraceRecord};
pub use typed_lines::MAX_TYPED_LINES;

use group_commit::WriteQueue;

use crate::location::{backups, first_free_name, private_file, private_folder, runtime_database};
use crate::maintenance::budget::sidecar_path;
use crate::{Store, StoreError};

/// The format version: the number of migrations applied.
const VERSION: i64 = MIGRATIONS.len() as i64;

/// One migration per format version.
const MIGRATIONS: [&str; 3] = [SCHEMA_1, SCHEMA_2, SCHEMA_3];

/// Longer than another process holds the lock.
const BUSY_TIMEOUT: Duration = Duration::from_mins(1);

/// SQLite's answer to `quick_check` for an intact file.
const CHECK_OK: &str = "ok";

const SCHEMA_1: &str = "
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

const SCHEMA_2: &str = "
    CREATE TABLE request (
        name          BLOB PRIMARY KEY,
        began         INTEGER NOT NULL,
        fingerprint   BLOB NOT NULL,        -- of all that was asked
        sequence      INTEGER NOT NULL,     -- how far the log was when it began
        owner         TEXT NOT NULL,        -- who does it
        status        INTEGER,              -- none while it is being done
        digest        INTEGER NOT NULL,     -- of all above
        answer        BLOB,
        answer_digest INTEGER
    ) STRICT;
    CREATE INDEX request_began ON request (began);

    CREATE TABLE ticket (
        hash    BLOB PRIMARY KEY,
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE visitor (
        hash    BLOB PRIMARY KEY,
        token   BLOB NOT NULL,              -- hash of the token that its ticket was made with
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;";

const SCHEMA_3: &str = "
    CREATE TABLE typed (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        project BLOB NOT NULL,
        thread  BLOB,                       -- of the message, if there was one
        text    TEXT NOT NULL
    ) STRICT;
    CREATE INDEX typed_project ON typed (project, number);";

#[derive(Debug)]
pub struct RuntimeDatabase {
    connection: Mutex<Connection>,
    /// Writes waiting to be committed together.
    waiting: WriteQueue,
}

impl Store {
    /// Opens the runtime database; creates it if it is missing.
    pub fn runtime_database(&self) -> Result<RuntimeDatabase, StoreError> {
        let path = runtime_database(&self.folder);
        private_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // A turn may leave text behind that is redacted later, when its location is unknown.
        connection.pragma_update(None, "secure_delete", true)?;
        let opened = RuntimeDatabase { connection: Mutex::new(connection), waiting: WriteQueue::default() };
        opened.prepare()?;
        Ok(opened)
    }

    /// Opens the runtime database if it exists.
    pub fn existing_runtime_database(&self) -> Result<Option<RuntimeDatabase>, StoreError> {
        if runtime_database(&self.folder).exists() { self.runtime_database().map(Some) } else { Ok(None) }
    }

    /// Checks the runtime database. `None` if it is intact, missing, or written by a newer version.
    pub fn runtime_database_problem(&self) -> Option<String> {
        let sound = self.existing_runtime_database().and_then(|runtime_database| match runtime_database {
            Some(runtime_database) => {
                let check = "PRAGMA quick_check(1)";
                Ok(runtime_database.connection().query_row(check, [], |row| row.get::<_, String>(0))?)
            }
            None => Ok(CHECK_OK.to_owned()),
        });
        match sound {
            Ok(answer) if answer == CHECK_OK => None,
            Ok(answer) => Some(format!("the runtime database (trace and running turns): {answer}")),
            Err(StoreError::Newer { .. }) => None,
            Err(error) => Some(format!("the runtime database (trace and running turns): {error}")),
        }
    }

    /// The error for a runtime database of a newer version. It is not damaged, but this program cannot use it.
    pub fn newer_runtime_database(&self) -> Option<StoreError> {
        self.existing_runtime_database().err().filter(|error| matches!(error, StoreError::Newer { .. }))
    }

    /// Moves a damaged runtime database to the backups, so that the next turn starts a new one; returns the backup's
    /// path. No thread is lost. A database of a newer version stays. No other process may have it open.
    pub fn quarantine_runtime_database(&self) -> Result<Option<PathBuf>, StoreError> {
        if self.runtime_database_problem().is_none() {
            return Ok(None);
        }
        let (path, place) = (runtime_database(&self.folder), backups(&self.folder));
        private_folder(&place)?;
        let kept = first_free_name(&place, |number| format!("ledger-{number}.db"));
        let moved = |from: PathBuf, to: &PathBuf| {
            std::fs::rename(&from, to).map_err(|error| StoreError::File { path: from, error })
        };
        moved(path.clone(), &kept)?;
        for ending in ["-wal", "-shm"] {
            let left = sidecar_path(&path, ending);
            if left.exists() {
                moved(left, &sidecar_path(&kept, ending))?;
            }
        }
        Ok(Some(kept))
    }
}

impl RuntimeDatabase {
    fn prepare(&self) -> Result<(), StoreError> {
        let connection = self.connection();
        match version(&connection)? {
            VERSION => return Ok(()),
            0 => connection.pragma_update(None, "journal_mode", "WAL")?,
            1..VERSION => {}
            found if found > VERSION => {
                return Err(StoreError::Newer { file: "ledger.db", found, known: VERSION });
            }
            found => return Err(StoreError::Damaged(format!("ledger.db has the version {found}"))),
        }
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        // Another process may have migrated it in the meantime.
        let before = usize::try_from(version(&transaction)?).unwrap_or(MIGRATIONS.len());
        for step in MIGRATIONS.iter().skip(before) {
            transaction.execute_batch(step)?;
        }
        if before < MIGRATIONS.len() {
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
    use retake_model::id::ProjectId;
    use retake_model::time::Timestamp;

    use super::*;

    #[test]
    fn an_older_runtime_database_is_migrated() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let old = Connection::open(folder.path().join("ledger.db")).expect("a database");
        old.pragma_update(None, "journal_mode", "WAL").expect("a writable database");
        old.execute_batch(SCHEMA_1).expect("the old schema");
        old.pragma_update(None, "user_version", 1).expect("a writable database");
        let project = ProjectId::from_bytes([1; 16]);
        old.execute(
            "INSERT INTO approval VALUES (?1, ?2, 'ls', 5)",
            rusqlite::params![project.key(), [2_u8; 32]],
        )
        .expect("a row");
        drop(old);
        for runtime_database in [store.runtime_database(), store.runtime_database()] {
            let runtime_database = runtime_database.expect("a migrated database");
            let known = runtime_database.approvals(project).expect("approvals");
            assert_eq!(known, [(Timestamp::from_millis(5), "ls".to_owned())]);
            assert!(
                !runtime_database.use_ticket(&[0; 32], Timestamp::from_millis(1)).expect("a ticket table")
            );
            runtime_database.add_typed_line(project, None, "hello").expect("a table of typed lines");
            assert_eq!(version(&runtime_database.connection()).expect("a version"), VERSION);
        }
        let newer = Connection::open(folder.path().join("ledger.db")).expect("a database");
        newer.pragma_update(None, "user_version", VERSION + 1).expect("a writable database");
        drop(newer);
        let error = store.runtime_database().expect_err("a newer version").to_string();
        assert!(error.contains("newer Retake") && error.contains("update this program"), "{error}");
    }

    #[test]
    fn a_newer_runtime_database_is_not_damaged_and_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        drop(store.runtime_database().expect("a runtime database"));
        let path = folder.path().join("ledger.db");
        let newer = Connection::open(&path).expect("a database");
        newer.pragma_update(None, "user_version", VERSION + 1).expect("a writable database");
        drop(newer);
        let before = std::fs::read(&path).expect("a file");
        assert_eq!(store.runtime_database_problem(), None);
        assert!(
            store
                .newer_runtime_database()
                .is_some_and(|error| error.to_string().contains("update this program"))
        );
        assert_eq!(store.quarantine_runtime_database().expect("a check"), None);
        assert_eq!(std::fs::read(&path).expect("a file"), before, "no byte changes");
        // Control: a format version that no program ever wrote counts as damage.
        let odd = Connection::open(&path).expect("a database");
        odd.pragma_update(None, "user_version", -1).expect("a writable database");
        drop(odd);
        assert!(store.quarantine_runtime_database().expect("a move").is_some());
    }

    #[test]
    fn a_damaged_runtime_database_is_detected_and_quarantined() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(store.runtime_database_problem(), None);
        drop(store.runtime_database().expect("a runtime database"));
        assert_eq!(store.runtime_database_problem(), None);
        assert_eq!(store.quarantine_runtime_database().expect("a check"), None);
        std::fs::write(folder.path().join("ledger.db"), [7; 8192]).expect("a writable database");
        assert!(store.runtime_database_problem().is_some());
        let kept = store.quarantine_runtime_database().expect("a move").expect("a damaged database");
        assert!(kept.exists());
        store.runtime_database().expect("a new database");
        assert_eq!(store.runtime_database_problem(), None);
    }
}
