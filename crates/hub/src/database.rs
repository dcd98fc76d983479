//! The two databases of the hub: SQLite in the program, and Postgres.
//!
//! ```text
//!   threads.rs, spaces.rs, …      every statement is written once, in the SQL that both understand
//!            │
//!      Connection: execute, query      ◄── the trait, with two implementations
//!        │                  │
//!     sqlite.rs        postgres.rs
//! ```
//!
//! The common SQL has three types (`BIGINT`, `TEXT`, `BYTEA`), parameters `$1`, `ON CONFLICT DO NOTHING` and `RETURNING`.
//! A conformance suite runs every subject on both.

mod postgres;
mod schema;
mod sqlite;

pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// A value of a row or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `NULL`
    Null,
    /// `BIGINT`
    Int(i64),
    /// `TEXT`
    Text(String),
    /// `BYTEA`
    Bytes(Vec<u8>),
}

macro_rules! value_from {
    ($($from:ty => $into:expr),+ $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                ($into)(value)
            }
        })+
    };
}

value_from! {
    i64 => Value::Int,
    u64 => |value| Value::Int(i64::try_from(value).unwrap_or(i64::MAX)),
    // Postgres refuses NUL in a text, wherever it came from: a path, a query, a title.
    &str => |value: &str| Value::Text(value.replace('\0', "\u{fffd}")),
    &String => |value: &String| Value::from(value.as_str()),
    String => |value: String| Value::from(value.as_str()),
    &[u8] => |value: &[u8]| Value::Bytes(value.to_vec()),
    &[u8; 32] => |value: &[u8; 32]| Value::Bytes(value.to_vec()),
    Vec<u8> => Value::Bytes,
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The values of parameters.
#[macro_export]
#[doc(hidden)]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::database::Value::from($value)),*] };
}

/// A row. Columns are read by position, in the order of the query.
#[derive(Clone, Debug)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    /// A number.
    pub fn int(&self, column: usize) -> Result<i64, DatabaseError> {
        self.optional_int(column)?.ok_or(DatabaseError::Shape)
    }

    /// A number that is not negative.
    pub fn count(&self, column: usize) -> Result<u64, DatabaseError> {
        u64::try_from(self.int(column)?).map_err(|_| DatabaseError::Shape)
    }

    /// A number, or `NULL`.
    pub fn optional_int(&self, column: usize) -> Result<Option<i64>, DatabaseError> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(DatabaseError::Shape),
        }
    }

    /// A text.
    pub fn text(&self, column: usize) -> Result<&str, DatabaseError> {
        self.optional_text(column)?.ok_or(DatabaseError::Shape)
    }

    /// A text, or `NULL`.
    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, DatabaseError> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(DatabaseError::Shape),
        }
    }

    /// Bytes.
    pub fn bytes(&self, column: usize) -> Result<&[u8], DatabaseError> {
        self.optional_bytes(column)?.ok_or(DatabaseError::Shape)
    }

    /// Bytes, or `NULL`.
    pub fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>, DatabaseError> {
        match self.0.get(column) {
            Some(Value::Bytes(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(DatabaseError::Shape),
        }
    }

    /// The 32 bytes of a hash.
    pub fn hash(&self, column: usize) -> Result<[u8; 32], DatabaseError> {
        self.bytes(column)?.try_into().map_err(|_| DatabaseError::Shape)
    }
}

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It cannot be reached, or stopped in the middle; nothing is known of a commit that was under way.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    /// Two transactions wanted the same rows; the transaction was rolled back and may be repeated.
    #[error("two transactions conflict")]
    Conflict,
    /// A newer hub has changed the schema.
    #[error("the database has schema {found}, this hub knows {known}; start a newer hub")]
    Newer {
        /// Its schema.
        found: i64,
        /// The newest known one.
        known: i64,
    },
    /// A row has other columns than the statement expects.
    #[error("the database returned a row of another shape")]
    Shape,
    /// A statement failed.
    #[error("a statement failed: {0}")]
    Statement(String),
}

/// A connection inside a transaction.
pub trait Connection {
    /// Runs a statement; returns the number of rows that it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError>;
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError>;
}

impl dyn Connection + '_ {
    /// The only row of a query, if there is one.
    pub fn row(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, DatabaseError> {
        Ok(self.query(sql, values)?.into_iter().next())
    }
}

/// What a transaction does to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It only reads, in one snapshot.
    Read,
    /// It changes rows.
    Write,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its changes become durable.
    Commit,
    /// Nothing changes.
    RollBack,
}

/// A database.
pub trait Database: Send + Sync {
    /// Runs work in one transaction. The work is repeated if it conflicts with another transaction, so it changes nothing
    /// outside. After `Ok`, the changes are durable.
    fn transact(
        &self,
        mode: Mode,
        work: &mut dyn FnMut(&mut dyn Connection) -> Result<Ending, DatabaseError>,
    ) -> Result<(), DatabaseError>;

    /// Overwrites what deleted rows left behind, as far as the engine can without locking tables.
    fn scrub(&self) -> Result<(), DatabaseError>;
}

impl dyn Database + '_ {
    /// Reads in one snapshot.
    pub fn read<T, E: From<DatabaseError>>(
        &self,
        mut work: impl FnMut(&mut dyn Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run(Mode::Read, &mut work)
    }

    /// Changes rows in one transaction, which an error rolls back.
    pub fn write<T, E: From<DatabaseError>>(
        &self,
        mut work: impl FnMut(&mut dyn Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run(Mode::Write, &mut work)
    }

    fn run<T, E: From<DatabaseError>>(
        &self,
        mode: Mode,
        work: &mut dyn FnMut(&mut dyn Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut outcome = None;
        let mut failed = None;
        self.transact(mode, &mut |connection| {
            // A statement that failed decides about a repetition, whatever the work makes of it.
            let mut watched = Watched { connection, failed: None };
            outcome = Some(work(&mut watched));
            match (watched.failed.take(), &outcome) {
                (Some(error), _) => Err(error),
                (None, Some(Ok(_))) => Ok(Ending::Commit),
                _ => Ok(Ending::RollBack),
            }
        })
        .unwrap_or_else(|error| failed = Some(error));
        match (failed, outcome) {
            (Some(error), _) => Err(error.into()),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(DatabaseError::Shape.into()),
        }
    }
}

/// Remembers the error of a statement.
struct Watched<'connection> {
    connection: &'connection mut dyn Connection,
    failed: Option<DatabaseError>,
}

impl Watched<'_> {
    fn note<T>(&mut self, result: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        result.map_err(|error| {
            let shown = DatabaseError::Statement(error.to_string());
            self.failed.get_or_insert(error);
            shown
        })
    }
}

impl Connection for Watched<'_> {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
        let result = self.connection.execute(sql, values);
        self.note(result)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        let result = self.connection.query(sql, values);
        self.note(result)
    }
}
