//! Salvage: copies readable rows from a damaged database file into a new one.
//!
//! ```text
//!   retake.db ──copy──► backups/damaged-1.db ──rows──► salvage/retake.db ──repair, verify──► retake.db
//! ```
//!
//! The damaged file is copied first. The new database is built, repaired and verified in a separate folder,
//! and only then replaces the old one: in an SQLite transaction if the old file can still be opened, so that
//! other processes simply see the new content; otherwise by renaming.
//!
//! If SQLite cannot reach the rows of a table, its leaf pages are scanned one by one (`leaves`).
//!
//! The first page locates all others, and the definitions of all tables are on it and on two more. They are the same in
//! every store of one schema except for a few counters. Fresh ones replace them in the copy.

mod leaves;

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use retake_model::time::Timestamp;
use rusqlite::backup::Backup;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Row};
use rustix::fs::{FlockOperation, fcntl_lock};
use serde::Serialize;

use crate::location::{backups, database, lock, open_private, private_file, private_folder, sync_folder};
use crate::maintenance::budget::sidecar_path;
use crate::maintenance::repair::RepairReport;
use crate::maintenance::scan::{Table, is_damage, scan};
use crate::maintenance::verify::MaintenanceProgress;
use crate::open::{Locked, OpenError, connect};
use crate::schema::{make_empty, pages};
use crate::{Store, StoreError, WriteTransaction};

/// The result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SalvageReport {
    /// The path of the damaged file's copy.
    pub kept_as: PathBuf,
    /// Rows that were read, of all tables.
    pub rows: u64,
    pub unreadable: Vec<UnreadableRows>,
}

/// A range of rows that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableRows {
    pub table: &'static str,
    /// The first key, if the table has numeric keys. Not every key need have a row.
    pub first: Option<i64>,
    pub last: Option<i64>,
}

/// Tables with numeric keys, which can be read from both ends and around gaps.
const NUMBERED: [Table; 5] = [
    Table { name: "object", key: "number", columns: "kind, packing, born, body" },
    Table { name: "object_recent", key: "number", columns: "first, names" },
    Table { name: "operation", key: "sequence", columns: "thread, version, id, body, bundle" },
    Table { name: "thread", key: "number", columns: "key, project, title, record, digest" },
    Table {
        name: "quarantine",
        key: "number",
        columns: "source, place, thread, version, prefix, kind, packing, id, body, time",
    },
];

/// Tables ordered by their first columns, which can be read from both ends.
const ORDERED: [(&str, &str, &[&str]); 10] = [
    ("folder", "key, record, digest", &["key"]),
    ("intent", "number, folder, thread, body, digest", &["number"]),
    ("pack", "number, born, bytes, raw", &["number"]),
    ("packed", "prefix, pack, frame, start, length", &["prefix", "pack", "frame", "start"]),
    ("doomed", "pack, frame, length", &["pack", "frame"]),
    ("object_index", "prefix, number", &["prefix", "number"]),
    ("redaction", "id, kind, time", &["id"]),
    ("lost", "id, kind, time", &["id"]),
    ("project", "key, path, device, inode, born, remote, last_seen, current, digest", &["key"]),
    ("presentation", "thread, entry, shown", &["thread", "entry"]),
];

impl Store {
    /// Repairs a store that cannot be opened. A store that can be opened is repaired as usual.
    ///
    /// The store must not be open in this process. Fails if another process has it open.
    pub fn salvage(
        folder: &Path,
        progress: &mut dyn FnMut(MaintenanceProgress),
        now: Timestamp,
    ) -> Result<RepairReport, OpenError> {
        match Self::open(folder) {
            Ok(store) => return Ok(store.repair(progress, now)?),
            Err(OpenError::Foreign(_) | OpenError::Store(StoreError::Damaged(_))) => {}
            Err(error) => return Err(error),
        }
        let repaired = replace_damaged(folder, progress, now)?;
        Ok(Self::open(folder)?.accept_lost_end(repaired)?)
    }
}

/// Replaces a database that cannot be opened by a new one with its readable rows.
fn replace_damaged(
    folder: &Path,
    progress: &mut dyn FnMut(MaintenanceProgress),
    now: Timestamp,
) -> Result<RepairReport, OpenError> {
    let waiting = open_private(&lock(folder))?;
    let _guard = Locked::new(&waiting, folder)?;
    let path = database(folder);
    // Stays open to the end: closing any handle on the file would release its lock.
    let damaged = exclusive(&path)?;
    let runtime = SalvageFolder::new(folder)?;
    let work = runtime.folder.join("damaged.db");
    copy(&damaged, &path, &work)?;
    copy_logs(&path, &work)?;
    let page_bytes = renew_schema_pages(&work, &runtime)?;
    let made = rebuild(&work, page_bytes, &runtime, progress, now)?;
    if made.rows == 0 {
        return Err(OpenError::Foreign(path.display().to_string()));
    }
    let kept_as = free_name(folder)?;
    copy(&damaged, &path, &kept_as)?;
    copy_logs(&path, &kept_as)?;
    swap(folder, &runtime)?;
    Ok(made.repaired(kept_as))
}

/// Repairs an open store whose file is known to be damaged.
pub(crate) fn in_place(
    store: &Store,
    progress: &mut dyn FnMut(MaintenanceProgress),
    now: Timestamp,
) -> Result<RepairReport, StoreError> {
    store.with_exclusive_access(|exclusive| {
        let kept_as = free_name(store.folder())?;
        private_file(&kept_as)?;
        copy_pages(&exclusive.connection, &mut connect(&kept_as)?)?;
        sync(&kept_as)?;
        let runtime = SalvageFolder::new(store.folder())?;
        let work = runtime.folder.join("damaged.db");
        copy(&File::open(&kept_as).map_err(failed(&kept_as))?, &kept_as, &work)?;
        let page_bytes = renew_schema_pages(&work, &runtime)?;
        let made = rebuild(&work, page_bytes, &runtime, progress, now)?;
        copy_pages(&connect(&runtime.new_database())?, &mut exclusive.connection)?;
        exclusive.truncate_wal()?;
        store.cache.clear();
        Ok(made.repaired(kept_as))
    })
}

/// The result of a rebuild.
struct RebuildResult {
    rows: u64,
    unreadable: Vec<UnreadableRows>,
    repaired: RepairReport,
}

impl RebuildResult {
    fn repaired(self, kept_as: PathBuf) -> RepairReport {
        RepairReport {
            salvaged: Some(SalvageReport { kept_as, rows: self.rows, unreadable: self.unreadable }),
            ..self.repaired
        }
    }
}

/// The folder of the new database, deleted afterwards.
struct SalvageFolder {
    folder: PathBuf,
}

impl SalvageFolder {
    fn new(folder: &Path) -> Result<Self, StoreError> {
        let folder = folder.join("salvage");
        // Left over from an interrupted salvage, and useless.
        remove_folder(&folder)?;
        private_folder(&folder)?;
        Ok(Self { folder })
    }

    fn new_folder(&self) -> PathBuf {
        self.folder.join("new")
    }

    fn new_database(&self) -> PathBuf {
        database(&self.new_folder())
    }
}

impl Drop for SalvageFolder {
    fn drop(&mut self) {
        // If this fails, the next salvage removes it.
        let _ = remove_folder(&self.folder);
    }
}

/// Builds a new store from the readable rows of a damaged database, and closes it.
fn rebuild(
    damaged: &Path,
    page_bytes: usize,
    runtime: &SalvageFolder,
    progress: &mut dyn FnMut(MaintenanceProgress),
    now: Timestamp,
) -> Result<RebuildResult, StoreError> {
    let source = connect(damaged)?;
    // Packs stay in place; a link makes them available to the repair.
    private_folder(&runtime.new_folder())?;
    let packs = runtime.new_folder().join("packs");
    std::os::unix::fs::symlink("../../packs", &packs).map_err(failed(&packs))?;
    let store = open_new(&runtime.new_folder())?;
    let mut unreadable = Vec::new();
    let rows = store.with_exclusive_access(|exclusive| {
        exclusive.transact(|writing| {
            let mut rows = 0;
            for table in NUMBERED {
                rows += copy_numbered(&source, writing, table, &mut unreadable)?;
            }
            for (table, columns, key) in ORDERED {
                rows += copy_ordered(&source, writing, (table, columns, key), &mut unreadable)?;
            }
            if unreadable.iter().any(|rows| ["object", "operation"].contains(&rows.table)) {
                rows += leaves::copy_rows(damaged, page_bytes, writing)?;
            }
            Ok(rows)
        })
    })?;
    let repaired = store.repair(progress, now)?;
    let verified = store.verify(progress)?;
    if let Some(problem) = verified.problems.first() {
        return Err(StoreError::Damaged(format!(
            "the readable rows do not make a complete store: {problem}"
        )));
    }
    Ok(RebuildResult { rows, unreadable, repaired })
}

fn open_new(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder).map_err(|error| match error {
        OpenError::Store(error) => error,
        other => StoreError::Damaged(other.to_string()),
    })
}

fn copy_numbered(
    source: &Connection,
    writing: &WriteTransaction<'_>,
    table: Table,
    unreadable: &mut Vec<UnreadableRows>,
) -> Result<u64, StoreError> {
    let columns = format!("{}, {}", table.key, table.columns);
    let mut copied = 0;
    let gaps = scan(source, table, &mut |row| {
        copied += insert(writing, table.name, &columns, row)?;
        Ok(())
    })?;
    unreadable.extend(gaps.into_iter().map(|gap| UnreadableRows {
        table: table.name,
        first: Some(gap.first),
        last: Some(gap.last),
    }));
    Ok(copied)
}

fn copy_ordered(
    source: &Connection,
    writing: &WriteTransaction<'_>,
    (table, columns, key): (&'static str, &str, &[&str]),
    unreadable: &mut Vec<UnreadableRows>,
) -> Result<u64, StoreError> {
    let mut copied = 0;
    let mut read = |direction: &str| -> rusqlite::Result<()> {
        let order: Vec<String> = key.iter().map(|key| format!("{key} {direction}")).collect();
        let sql = format!("SELECT {columns} FROM {table} ORDER BY {}", order.join(", "));
        let mut statement = source.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            copied += insert(writing, table, columns, row)?;
        }
        Ok(())
    };
    for direction in ["ASC", "DESC"] {
        match read(direction) {
            Ok(()) => return Ok(copied),
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreadable.push(UnreadableRows { table, first: None, last: None });
    Ok(copied)
}

/// Inserts a row as it was read; returns 0 if it exists already or violates a constraint.
fn insert(
    writing: &WriteTransaction<'_>,
    table: &str,
    columns: &str,
    row: &Row<'_>,
) -> rusqlite::Result<u64> {
    let count = columns.split(',').count();
    let values = (0..count).map(|column| row.get::<_, Value>(column)).collect::<Result<Vec<_>, _>>();
    // SQLite does not check that text is UTF-8.
    let Ok(values) = values else {
        return Ok(0);
    };
    let places = vec!["?"; count].join(", ");
    let sql = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({places})");
    let mut statement = writing.connection.prepare_cached(&sql)?;
    match statement.execute(rusqlite::params_from_iter(values)) {
        Ok(inserted) => Ok(inserted as u64),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Copies a database page by page, damaged or not.
fn copy_pages(from: &Connection, to: &mut Connection) -> Result<(), StoreError> {
    let backup = Backup::new(from, to)?;
    backup.run_to_completion(i32::MAX, std::time::Duration::from_millis(50), None)?;
    Ok(())
}

/// Opens a database file that no other process has open.
fn exclusive(path: &Path) -> Result<File, StoreError> {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).map_err(failed(path))?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::InUse)?;
    Ok(file)
}

fn copy(mut from: &File, named: &Path, to: &Path) -> Result<(), StoreError> {
    let mut target = open_private(to)?;
    from.seek(SeekFrom::Start(0)).map_err(failed(named))?;
    io::copy(&mut from, &mut target).map_err(failed(to))?;
    target.sync_all().map_err(failed(to))
}

/// Copies the write-ahead log and the rollback journal, which an interrupted migration leaves.
fn copy_logs(from: &Path, to: &Path) -> Result<(), StoreError> {
    for ending in ["-wal", "-journal"] {
        let (from, to) = (sidecar_path(from, ending), sidecar_path(to, ending));
        match File::open(&from) {
            Ok(file) => copy(&file, &from, &to)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&from)(error)),
        }
    }
    Ok(())
}

/// Gives a copy of a damaged database the definitions of a new store, with its own page count. Returns its page size.
fn renew_schema_pages(work: &Path, runtime: &SalvageFolder) -> Result<usize, StoreError> {
    let fail = failed(work);
    let damaged = File::open(work).map_err(&fail)?;
    let size = pages::size_in(&damaged).map_err(&fail)?;
    let sample = runtime.folder.join("sample.db");
    private_file(&sample)?;
    make_empty(&sample, size)?;
    let fresh = fs::read(&sample).map_err(failed(&sample))?;
    let numbers = pages::of_schema(&fresh, size)
        .ok_or_else(|| StoreError::Damaged("a new database cannot be read".to_owned()))?;
    let file = fs::OpenOptions::new().write(true).open(work).map_err(&fail)?;
    // A truncated file may lack even the root pages of its tables.
    let length = damaged.metadata().map_err(&fail)?.len().max(fresh.len() as u64);
    let length = length.next_multiple_of(size as u64);
    file.set_len(length).map_err(&fail)?;
    for number in numbers {
        let range = (number - 1) * size..number * size;
        let mut page = fresh.get(range.clone()).unwrap_or_default().to_vec();
        if number == 1 {
            // The page count is used only if both counters agree. Reading needs no free list.
            let count = u32::try_from(length / size as u64).unwrap_or(u32::MAX);
            let counter: [u8; 4] = [0, 0, 0, 1];
            page[24..28].copy_from_slice(&counter);
            page[92..96].copy_from_slice(&counter);
            page[28..32].copy_from_slice(&count.to_be_bytes());
            page[32..40].fill(0);
        }
        file.write_all_at(&page, range.start as u64).map_err(&fail)?;
    }
    file.sync_all().map_err(&fail)?;
    Ok(size)
}

/// Replaces the damaged database, of which a copy exists, by the new one.
fn swap(folder: &Path, runtime: &SalvageFolder) -> Result<(), StoreError> {
    let path = database(folder);
    sync(&runtime.new_database())?;
    // A journal of the old file would be rolled back into the new one.
    for ending in ["-wal", "-shm", "-journal"] {
        let sidecar_path = sidecar_path(&path, ending);
        match fs::remove_file(&sidecar_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&sidecar_path)(error));
            }
            _ => {}
        }
    }
    fs::rename(runtime.new_database(), &path).map_err(failed(&path))?;
    sync_folder(folder).map_err(failed(folder))
}

fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(failed(path))?;
    path.parent().map_or(Ok(()), sync_folder).map_err(failed(path))
}

/// An unused name under `backups/`.
fn free_name(folder: &Path) -> Result<PathBuf, StoreError> {
    let backups = backups(folder);
    private_folder(&backups)?;
    let mut names = (1..).map(|number| backups.join(format!("damaged-{number}.db")));
    Ok(names
        .find(|path| fs::symlink_metadata(path).is_err())
        .expect("an infinite sequence contains an unused name"))
}

fn remove_folder(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError + Clone {
    let path = path.to_owned();
    move |error| StoreError::File { path: path.clone(), error }
}
