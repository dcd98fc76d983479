//! Postgres: any number of hubs on one database.
//!
//! Transactions have the isolation "read committed". That is enough, because every decision is a condition of the
//! statement that changes the row: `UPDATE … WHERE head = $expected` waits for a transaction that is changing the row, and
//! then compares with what that one committed.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Statement};

use super::{Connection, Database, DatabaseError, Ending, Mode, Row, Value, schema};

/// How long a request waits for a connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long bytes to the database may stay unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// How often a transaction that conflicts is repeated.
const TRIES: u32 = 5;
/// The key of the lock under which one hub migrates the tables.
const MIGRATION_LOCK: i64 = 0x7265_7461_6b65;

/// A Postgres database.
pub struct Postgres {
    config: Config,
    most: usize,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Session>,
    open: usize,
}

/// A connection with the statements that it has prepared.
struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Postgres {
    /// Connects to a database such as `postgres://hub@localhost/hub`, with at most so many connections.
    pub fn connect(address: &str, most: usize) -> Result<Self, DatabaseError> {
        let mut config = Config::from_str(address).map_err(|error| failed(&error))?;
        config.application_name("retake-hub");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(POOL_TIMEOUT);
        }
        config.tcp_user_timeout(UNACKNOWLEDGED);
        let database = Self { config, most: most.max(1), pool: Mutex::default(), returned: Condvar::new() };
        database.transact(Mode::Write, &mut |connection| {
            connection.query("SELECT pg_advisory_xact_lock($1)::text", crate::values![MIGRATION_LOCK])?;
            schema::migrate(connection, "BYTEA")?;
            Ok(Ending::Commit)
        })?;
        Ok(database)
    }

    fn session(&self) -> Result<Session, DatabaseError> {
        let until = Instant::now() + POOL_TIMEOUT;
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while let Some(session) = pool.idle.pop() {
                if !session.client.is_closed() {
                    return Ok(session);
                }
                pool.open -= 1;
            }
            if pool.open < self.most {
                pool.open += 1;
                drop(pool);
                return self.open().inspect_err(|_| self.forget());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DatabaseError::Unavailable("all connections are in use".to_owned()));
            }
            pool = self.returned.wait_timeout(pool, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn open(&self) -> Result<Session, DatabaseError> {
        let client = self.config.connect(NoTls).map_err(|error| failed(&error))?;
        Ok(Session { client, statements: HashMap::new() })
    }

    fn forget(&self) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).open -= 1;
        self.returned.notify_one();
    }

    fn give_back(&self, session: Session) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).idle.push(session);
        self.returned.notify_one();
    }
}

/// Returns the session, or forgets it if the work panicked or the connection broke.
struct PooledSession<'database> {
    database: &'database Postgres,
    session: Option<Session>,
}

impl Drop for PooledSession<'_> {
    fn drop(&mut self) {
        match self.session.take() {
            Some(session) if !session.client.is_closed() && !std::thread::panicking() => {
                self.database.give_back(session);
            }
            _ => self.database.forget(),
        }
    }
}

impl Database for Postgres {
    fn transact(
        &self,
        mode: Mode,
        work: &mut dyn FnMut(&mut dyn Connection) -> Result<Ending, DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut pooled = PooledSession { database: self, session: Some(self.session()?) };
            let session = pooled.session.as_mut().expect("it is taken only when dropped");
            match run(session, mode, work) {
                Err(DatabaseError::Conflict) if tries < TRIES => {}
                done => return done,
            }
        }
    }

    fn scrub(&self) -> Result<(), DatabaseError> {
        let mut pooled = PooledSession { database: self, session: Some(self.session()?) };
        let session = pooled.session.as_mut().expect("it is taken only when dropped");
        // Frees the space of dead rows for new ones. FULL would write the tables again without them, but locks all spaces.
        let tables = ["bundle", "thread", "facet", "link", "feed"];
        for table in tables {
            let sql = format!("VACUUM {table}");
            session.client.batch_execute(&sql).map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

fn run(
    session: &mut Session,
    mode: Mode,
    work: &mut dyn FnMut(&mut dyn Connection) -> Result<Ending, DatabaseError>,
) -> Result<(), DatabaseError> {
    let begin = match mode {
        Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        Mode::Write => "BEGIN",
    };
    session.batch(begin)?;
    let mut open = OpenTransaction { session, over: false };
    match work(open.session) {
        Ok(Ending::Commit) => {
            open.over = true;
            open.session.batch("COMMIT")
        }
        Ok(Ending::RollBack) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Rolls back unless it is over, also when the work panics.
struct OpenTransaction<'session> {
    session: &'session mut Session,
    over: bool,
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.session.batch("ROLLBACK");
        }
    }
}

impl Session {
    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.client.batch_execute(sql).map_err(|error| failed(&error))
    }

    /// The types come from the values: the server would take `$1 = 0` for a comparison of small integers.
    fn prepared(&mut self, sql: &str, values: &[Value]) -> Result<Statement, DatabaseError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let kind = |value: &Value| match value {
            Value::Null => Type::UNKNOWN,
            Value::Int(_) => Type::INT8,
            Value::Text(_) => Type::TEXT,
            Value::Bytes(_) => Type::BYTEA,
        };
        let types: Vec<Type> = values.iter().map(kind).collect();
        let statement = self.client.prepare_typed(sql, &types).map_err(|error| failed(&error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Connection for Session {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
        let statement = self.prepared(sql, values)?;
        let parameters = parameters(&statement, values);
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(AsRef::as_ref).collect();
        self.client.execute(&statement, &parameters).map_err(|error| failed(&error))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        let statement = self.prepared(sql, values)?;
        let parameters = parameters(&statement, values);
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(AsRef::as_ref).collect();
        let rows = self.client.query(&statement, &parameters).map_err(|error| failed(&error))?;
        rows.iter().map(read_row).collect()
    }
}

fn parameters<'value>(statement: &Statement, values: &'value [Value]) -> Vec<Box<dyn ToSql + Sync + 'value>> {
    let types = statement.params().iter();
    let parameter = |(value, kind): (&'value Value, &Type)| -> Box<dyn ToSql + Sync + 'value> {
        match value {
            Value::Int(value) => Box::new(value),
            Value::Text(value) => Box::new(value),
            Value::Bytes(value) => Box::new(value),
            Value::Null if *kind == Type::INT8 => Box::new(None::<i64>),
            Value::Null if *kind == Type::BYTEA => Box::new(None::<&[u8]>),
            Value::Null => Box::new(None::<&str>),
        }
    };
    values.iter().zip(types).map(parameter).collect()
}

fn read_row(row: &postgres::Row) -> Result<Row, DatabaseError> {
    let value = |(column, description): (usize, &postgres::Column)| {
        let shape = |_| DatabaseError::Shape;
        Ok(match *description.type_() {
            Type::INT8 => {
                row.try_get::<_, Option<i64>>(column).map_err(shape)?.map_or(Value::Null, Value::Int)
            }
            Type::TEXT | Type::VARCHAR => {
                row.try_get::<_, Option<String>>(column).map_err(shape)?.map_or(Value::Null, Value::Text)
            }
            Type::BYTEA => {
                row.try_get::<_, Option<Vec<u8>>>(column).map_err(shape)?.map_or(Value::Null, Value::Bytes)
            }
            _ => return Err(DatabaseError::Shape),
        })
    };
    row.columns().iter().enumerate().map(value).collect::<Result<_, _>>().map(Row)
}

fn failed(error: &postgres::Error) -> DatabaseError {
    let text = || {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    };
    match error.code() {
        Some(code)
            if [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code) =>
        {
            DatabaseError::Conflict
        }
        Some(code)
            if code.code().starts_with("57P")
                || code.code().starts_with("53")
                || code.code().starts_with("08") =>
        {
            DatabaseError::Unavailable(text())
        }
        Some(_) => DatabaseError::Statement(text()),
        None => DatabaseError::Unavailable(text()),
    }
}
