//! Opens a store: folder, schema, and durability settings.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::location::{database, lock, open_private, private_file, private_folder};
use crate::log::writer::Writer;
use crate::objects::cache::Cache;
use crate::schema::{APPLICATION, CURRENT, MIGRATIONS, check_schema_text, migrate, pages, version};
use crate::{Store, StoreError};

/// The first SQLite version without the bug that could corrupt a database with several writers.
const OLDEST_SQLITE: i32 = 3_051_003;

/// Why a store could not be opened. It was not changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "this store was written by a newer Retake (schema {found}; this program supports {wanted}). \
         It was not changed: update this program, or point RETAKE_HOME at another folder"
    )]
    Newer {
        found: i64,
        /// The schema that this program supports.
        wanted: i64,
    },
    /// The folder contains other files.
    #[error("{0} contains other files and no store; point RETAKE_HOME at an empty folder")]
    NotEmpty(String),
    /// The file is not a Retake database.
    #[error("{0} is not a Retake store; it was not changed")]
    Foreign(String),
    /// The linked SQLite is not safe with several writers.
    #[error("this build contains SQLite {0}, which can damage a store; at least 3.51.3 is needed")]
    OldSqlite(&'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Opens the store in this folder; creates it if there is none.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_with(folder, MIGRATIONS)
    }

    /// Opens the store with other migrations, for tests.
    #[doc(hidden)]
    pub fn open_with(folder: &Path, migrations: &[&str]) -> Result<Self, OpenError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(OpenError::OldSqlite(rusqlite::version()));
        }
        check_folder(folder)?;
        private_folder(folder)?;
        let lock = open_private(&lock(folder))?;
        prepare(folder, &lock, migrations)?;
        let cache = Arc::new(Cache::of(folder));
        let schema = migrations.len() as i64;
        let writer = Writer::new(folder.to_owned(), lock, Arc::clone(&cache), schema);
        Ok(Self { folder: folder.to_owned(), cache, connect, readers: Mutex::default(), writer, schema })
    }

    /// Opens a store that no process writes to, without creating, locking or changing a file. Writes are refused.
    pub(crate) fn open_immutable(folder: &Path) -> Result<Self, OpenError> {
        let (path, lock) = (database(folder), lock(folder));
        let connection = connect_immutable(&path)?;
        check_ours(&connection, &path)?;
        check_schema_text(&connection)?;
        let lock = std::fs::File::open(&lock).map_err(|error| StoreError::File { path: lock, error })?;
        let cache = Arc::new(Cache::of(folder));
        let writer = Writer::new(folder.to_owned(), lock, Arc::clone(&cache), CURRENT);
        writer.refuse_all();
        let readers = Mutex::new(vec![connection]);
        Ok(Self {
            folder: folder.to_owned(),
            cache,
            connect: connect_immutable,
            readers,
            writer,
            schema: CURRENT,
        })
    }
}

/// A folder with other files is not used: its mode would be restricted.
fn check_folder(folder: &Path) -> Result<(), OpenError> {
    if database(folder).exists() || lock(folder).exists() {
        return Ok(());
    }
    let Ok(found) = std::fs::read_dir(folder) else { return Ok(()) };
    // Another process may be creating the store right now, so its own files do not count.
    let ours = |name: &str| OWN_FILES.iter().any(|own| name.starts_with(own));
    let foreign = found.flatten().any(|file| !ours(&file.file_name().to_string_lossy()));
    if foreign { Err(OpenError::NotEmpty(folder.display().to_string())) } else { Ok(()) }
}

/// Prefixes of the names of a store's files.
const OWN_FILES: [&str; 6] = ["retake.db", "search.db", "writer.lock", "backups", "packs", "folders"];

/// Ensures that the database exists, belongs to Retake, and has the current schema.
fn prepare(folder: &Path, lock: &std::fs::File, migrations: &[&str]) -> Result<(), OpenError> {
    let path = database(folder);
    let new = std::fs::metadata(&path).map_or(0, |found| found.len()) == 0;
    private_file(&path)?;
    let connection = connect(&path)?;
    if !new {
        check_ours(&connection, &path)?;
        if version(&connection)? == migrations.len() as i64 {
            // Tests pass other migrations.
            if migrations == MIGRATIONS {
                check_schema_text(&connection)?;
            }
            if pages::in_wal_mode(&connection)? {
                return Ok(());
            }
            // It was copied from a backup.
            let _guard = Locked::new(lock, folder)?;
            return Ok(pages::enter_wal_mode(&connection)?);
        }
    }
    // Two processes may start at once: one prepares the database, for which it must be the only one that has it open, and
    // the other finds it ready.
    drop(connection);
    let _guard = Locked::new(lock, folder)?;
    let mut connection = connect(&path)?;
    check_ours(&connection, &path)?;
    if version(&connection)? == 0 {
        pages::set_up(&connection)?;
    }
    migrate(&mut connection, folder, migrations)
}

fn check_ours(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    // One transaction for both reads: another process may be creating the store.
    let transaction = connection.unchecked_transaction().map_err(StoreError::from)?;
    let application: i64 =
        transaction.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(StoreError::from)?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(StoreError::from)?;
    if application == APPLICATION || (application == 0 && tables == 0) {
        Ok(())
    } else {
        Err(OpenError::Foreign(path.display().to_string()))
    }
}

/// How long a connection waits for others.
pub(crate) const BUSY_WAIT: Duration = Duration::from_mins(1);

/// Opens a connection with durable commits and a long busy timeout.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Readers block only while SQLite recovers the write-ahead log after a crash.
    connection.busy_timeout(BUSY_WAIT)?;
    // A database file may come from anywhere; nothing in its schema may run code.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Without this, SQLite plans some statements again for every bound value, which costs more than running them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA mmap_size = 0;
         PRAGMA cell_size_check = ON;
         PRAGMA secure_delete = ON;
         PRAGMA cache_size = -16384;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Opens a database that no process changes. SQLite then needs no lock and no file beside it.
pub(crate) fn connect_immutable(path: &Path) -> Result<Connection, StoreError> {
    let mut address = String::from("file:");
    for byte in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).as_os_str().as_bytes() {
        let _ = write!(address, "%{byte:02x}");
    }
    address.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(address, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY",
    )?;
    Ok(connection)
}

/// The lock on which the writers of all processes queue. The operating system releases it when a process dies.
pub(crate) struct Locked<'lock>(&'lock std::fs::File);

impl<'lock> Locked<'lock> {
    pub(crate) fn new(file: &'lock std::fs::File, folder: &Path) -> Result<Self, StoreError> {
        file.lock().map_err(|error| StoreError::File { path: lock(folder), error })?;
        Ok(Self(file))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // If unlocking fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}
