//! SQLite in the program: one file, one writer, many readers.
//!
//! Write transactions take turns in the process, and a commit is on disk before it is acknowledged (WAL, full sync).
//! Deleted rows are overwritten, so that a redacted text does not survive in free pages.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql, TransactionBehavior, params_from_iter};

use super::{Connection, Database, DatabaseError, Ending, Mode, Row, Value, schema};

/// How many idle readers stay open.
const IDLE_READERS: usize = 16;
/// Another process, such as a command of the administrator, writes only briefly.
const BUSY: Duration = Duration::from_secs(10);

/// A SQLite database.
pub struct Sqlite {
    path: PathBuf,
    writer: Mutex<rusqlite::Connection>,
    readers: Mutex<Vec<rusqlite::Connection>>,
}

impl Sqlite {
    /// Opens or creates the database.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        create(path)?;
        let mut writer = connect(path)?;
        writer.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        writer.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        writer.pragma_update(None, "secure_delete", "ON").map_err(failed)?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        schema::migrate(&mut Inside(&transaction), "BLOB")?;
        transaction.commit().map_err(failed)?;
        Ok(Self { path: path.to_owned(), writer: Mutex::new(writer), readers: Mutex::default() })
    }

    fn reader(&self) -> Result<rusqlite::Connection, DatabaseError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connect(&self.path), Ok)
    }
}

/// Creates a file that only its account reads; SQLite gives its other files the same mode. An existing file is not opened:
/// closing it would release the locks of other connections of this process.
fn create(path: &Path) -> Result<(), DatabaseError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(DatabaseError::Unavailable(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

fn connect(path: &Path) -> Result<rusqlite::Connection, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

impl Database for Sqlite {
    fn transact(
        &self,
        mode: Mode,
        work: &mut dyn FnMut(&mut dyn Connection) -> Result<Ending, DatabaseError>,
    ) -> Result<(), DatabaseError> {
        if mode == Mode::Write {
            // A panic rolled its transaction back, so that the connection is as good as before.
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            return run(&mut writer, TransactionBehavior::Immediate, work);
        }
        let mut reader = self.reader()?;
        run(&mut reader, TransactionBehavior::Deferred, work)?;
        let mut idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_READERS {
            idle.push(reader);
        }
        Ok(())
    }

    fn scrub(&self) -> Result<(), DatabaseError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Pages of before are still in the log until it is copied and truncated.
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)
    }
}

fn run(
    connection: &mut rusqlite::Connection,
    behavior: TransactionBehavior,
    work: &mut dyn FnMut(&mut dyn Connection) -> Result<Ending, DatabaseError>,
) -> Result<(), DatabaseError> {
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    match work(&mut Inside(&transaction))? {
        Ending::Commit => transaction.commit().map_err(failed),
        Ending::RollBack => transaction.rollback().map_err(failed),
    }
}

struct Inside<'transaction>(&'transaction rusqlite::Connection);

impl Connection for Inside<'_> {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
        let mut statement = self.0.prepare_cached(&numbered(sql)).map_err(failed)?;
        Ok(statement.execute(params_from_iter(values)).map_err(failed)? as u64)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        let mut statement = self.0.prepare_cached(&numbered(sql)).map_err(failed)?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values)).map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            let values = (0..columns).map(|column| match row.get_ref(column).map_err(failed)? {
                ValueRef::Null => Ok(Value::Null),
                ValueRef::Integer(value) => Ok(Value::Int(value)),
                ValueRef::Text(value) => {
                    String::from_utf8(value.to_vec()).map(Value::Text).map_err(|_| DatabaseError::Shape)
                }
                ValueRef::Blob(value) => Ok(Value::Bytes(value.to_vec())),
                ValueRef::Real(_) => Err(DatabaseError::Shape),
            });
            rows.push(Row(values.collect::<Result<_, _>>()?));
        }
        Ok(rows)
    }
}

/// SQLite would number `$2` by its first appearance; `?2` is the second parameter.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

fn failed(error: rusqlite::Error) -> DatabaseError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Conflict,
        Some(
            ErrorCode::CannotOpen | ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::ReadOnly,
        ) => DatabaseError::Unavailable(error.to_string()),
        _ => DatabaseError::Statement(error.to_string()),
    }
}
