//! Backups: a consistent copy of the store, made while other processes write.
//!
//! ```text
//!   1  TO.retake-partial/       retake.db   one read transaction, copied page by page
//!   2                           packs/, shared/, ledger.db
//!   3  content destroyed since 1?  ──► again from 1
//!   4                           backup.json: size and hash of every file; all synced
//!   5  rename ──► TO/           and the key for sealed files ──► TO.key
//! ```
//!
//! A killed backup leaves only the folder of step 1, which the next backup to the same place replaces. A backup is a
//! store: opening the folder, or a copy of it, restores it. The search index and the caches of folders are left out,
//! because they are derived, and so are tokens.

mod check;
mod manifest;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use retake_model::time::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

pub use check::{BackupCheck, BackupKeyState, BackupProblem};

use crate::location::{
    Permissions, database, erasure_marker, lock, open_private, private_file, private_folder,
    runtime_database, sync_folder,
};
use crate::log::high_water_mark;
use crate::objects::packs;
use crate::tables::shared_settings;
use crate::{ReadTransaction, SearchError, Store, StoreError};
use manifest::{KeyFile, Manifest, hash_file};

/// Pages copied between two reports of progress.
const PAGES_PER_STEP: i32 = 1024;
/// How often a backup starts again because content was destroyed meanwhile.
const ATTEMPTS: usize = 10;
/// The end of the name of an unfinished backup.
const UNFINISHED: &str = ".retake-partial";
const COPY_BUFFER: usize = 1024 * 1024;

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// The folder of the backup.
    pub path: PathBuf,
    /// Number of files in it.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    pub operations: u64,
    pub threads: u64,
    /// The copy of the key for sealed files, beside the backup; `None` if nothing was ever sealed.
    pub key: Option<PathBuf>,
    /// Files that the store should have and does not: the store is damaged.
    pub missing: Vec<String>,
}

/// Progress of a backup or of its check, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    pub done: u64,
    /// An estimate.
    pub total: u64,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A backup never overwrites anything.
    #[error("{} already exists, and a backup overwrites nothing; choose another path", .0.display())]
    AlreadyExists(PathBuf),
    #[error("{} is inside the store; choose a folder outside, best on another disk", .0.display())]
    InsideStore(PathBuf),
    #[error("another backup to {} is running; wait until it ends", .0.display())]
    Running(PathBuf),
    /// Another process keeps destroying content.
    #[error(
        "other programs delete content from the store all the time, so that no backup is consistent; try again later"
    )]
    Unsettled,
    /// The folder is not a whole backup.
    #[error("{} is not a whole backup: {reason}", path.display())]
    NotABackup { path: PathBuf, reason: String },
    /// The backup is intact, but this program cannot check its content.
    #[error(
        "every file of the backup is as it was written, but its database has the format {found} and this program checks \
         the format {wanted}; open a copy of it as a store to migrate it, then run `retake verify`"
    )]
    OtherFormat { found: i64, wanted: i64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SearchError> for BackupError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => Self::Store(error),
            // Only an interrupted redaction opens the search index here.
            other => Self::Store(StoreError::Damaged(other.to_string())),
        }
    }
}

impl Store {
    /// Writes a backup to a new folder. Other processes may read and write meanwhile.
    ///
    /// `program` is the version that the backup names as its writer.
    pub fn back_up(
        &self,
        to: &Path,
        program: &str,
        now: Timestamp,
        progress: &mut dyn FnMut(BackupProgress),
    ) -> Result<BackupReport, BackupError> {
        let target = Target::new(self, to)?;
        let partial = PartialBackup::begin(&target)?;
        for _ in 0..ATTEMPTS {
            self.wait_for_erasure()?;
            let mut copy =
                BackupCopy { partial: &partial, manifest: Manifest::new(program, now), progress, done: 0 };
            let copied = copy.all(self)?;
            if self.read()?.queries().erasure_epoch() == copied.epoch {
                let BackupCopy { manifest, .. } = copy;
                return finish(self, &target, partial, manifest, copied);
            }
            // A pack may have been overwritten while it was copied, and what was destroyed must not survive here.
            partial.empty()?;
        }
        Err(BackupError::Unsettled)
    }

    /// Completes an interrupted erasure, or waits for a running one: a backup has no content that is being destroyed.
    fn wait_for_erasure(&self) -> Result<(), BackupError> {
        let marker = erasure_marker(&self.folder);
        for _ in 0..ATTEMPTS {
            if self.finish_erasure()? || !marker.exists() {
                break;
            }
            if let Ok(running) = File::open(&marker) {
                running.lock_shared().map_err(failed(&marker))?;
            }
        }
        Ok(())
    }
}

/// Publishes a complete copy.
fn finish(
    store: &Store,
    target: &Target,
    partial: PartialBackup,
    mut manifest: Manifest,
    copied: Copied,
) -> Result<BackupReport, BackupError> {
    let key_file = store.key_file();
    let key = match fs::read(&key_file) {
        Ok(key) => Some(key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&key_file)(error).into()),
    };
    manifest.key = key.as_deref().map(KeyFile::of);
    manifest.write(&partial.folder)?;
    for folder in
        [packs::folder(&partial.folder), shared_settings::folder_of(&partial.folder), partial.folder.clone()]
    {
        if folder.exists() {
            sync_folder(&folder).map_err(failed(&folder))?;
        }
    }
    if let Some(key) = &key {
        // The key comes first: a backup without it could not restore its sealed files.
        target.put_key(key)?;
    }
    let report = BackupReport {
        path: target.folder.clone(),
        files: manifest.files.len() as u64,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        operations: copied.operations,
        threads: copied.threads,
        key: key.map(|_| target.key.clone()),
        missing: copied.missing,
    };
    partial.publish(target)?;
    Ok(report)
}

/// Where the backup goes.
struct Target {
    folder: PathBuf,
    parent: PathBuf,
    key: PathBuf,
    partial: PathBuf,
}

impl Target {
    fn new(store: &Store, to: &Path) -> Result<Self, BackupError> {
        let not_a_place = || failed(to)(io::ErrorKind::InvalidFilename.into());
        let name = to.file_name().ok_or_else(not_a_place)?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).map_err(failed(parent))?;
        let folder = parent.join(name);
        let own = fs::canonicalize(&store.folder).map_err(failed(&store.folder))?;
        if parent.starts_with(&own) {
            return Err(BackupError::InsideStore(folder));
        }
        let beside = |ending: &str| {
            let mut name = name.to_owned();
            name.push(ending);
            parent.join(name)
        };
        let target = Self { key: beside(".key"), partial: beside(UNFINISHED), folder, parent };
        if fs::symlink_metadata(&target.folder).is_ok() {
            return Err(BackupError::AlreadyExists(target.folder));
        }
        Ok(target)
    }

    /// Writes the key beside the backup. An equal one, which a killed backup left, stays.
    fn put_key(&self, key: &[u8]) -> Result<(), BackupError> {
        match fs::read(&self.key) {
            Ok(found) if found == key => return Ok(()),
            Ok(_) => return Err(BackupError::AlreadyExists(self.key.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&self.key)(error).into()),
        }
        let new = self.partial.join("key");
        let mut file = open_private(&new)?;
        file.write_all(key).and_then(|()| file.sync_all()).map_err(failed(&new))?;
        fs::rename(&new, &self.key).map_err(failed(&self.key))?;
        Ok(sync_folder(&self.parent).map_err(failed(&self.parent))?)
    }
}

/// The folder of an unfinished backup, locked while it is written. Dropping it deletes the folder.
struct PartialBackup {
    folder: PathBuf,
    /// The lock of the folder itself: the system releases it when the process dies.
    _lock: File,
}

impl PartialBackup {
    /// Creates the folder, in place of one that a killed backup left.
    fn begin(target: &Target) -> Result<Self, BackupError> {
        let folder = &target.partial;
        loop {
            let made = DirBuilder::new().mode(Permissions::FOLDER).create(folder);
            match made {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(folder)(error).into()),
            }
            let lock = match File::open(folder) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(folder)(error).into()),
            };
            if lock.try_lock().is_err() {
                return Err(BackupError::Running(target.folder.clone()));
            }
            // Another process may have finished or removed this folder before we locked it.
            let inode = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
            if inode(lock.metadata()) == inode(fs::symlink_metadata(folder)) {
                let partial = Self { folder: folder.clone(), _lock: lock };
                partial.empty()?;
                private_folder(folder)?;
                return Ok(partial);
            }
        }
    }

    /// Deletes what is in the folder.
    fn empty(&self) -> Result<(), BackupError> {
        for entry in fs::read_dir(&self.folder).map_err(failed(&self.folder))? {
            let path = entry.map_err(failed(&self.folder))?.path();
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
            let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(failed(&path))?;
        }
        Ok(())
    }

    fn publish(mut self, target: &Target) -> Result<(), BackupError> {
        // Renaming a folder never replaces a file or a folder with content.
        fs::rename(&self.folder, &target.folder).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => BackupError::AlreadyExists(target.folder.clone()),
            _ => failed(&target.folder)(error).into(),
        })?;
        // Nothing is left to delete.
        self.folder = PathBuf::new();
        Ok(sync_folder(&target.parent).map_err(failed(&target.parent))?)
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        // What cannot be deleted, the next backup deletes.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What the copied database says.
struct Copied {
    epoch: i64,
    operations: u64,
    threads: u64,
    missing: Vec<String>,
}

/// One attempt to copy everything.
struct BackupCopy<'run> {
    partial: &'run PartialBackup,
    manifest: Manifest,
    progress: &'run mut dyn FnMut(BackupProgress),
    done: u64,
}

impl BackupCopy<'_> {
    fn all(&mut self, store: &Store) -> Result<Copied, BackupError> {
        let reading = store.read()?;
        let queries = reading.queries();
        let count = |sql: &str| queries.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let operations =
            count("SELECT count(*) FROM operation WHERE version > 0").map_err(StoreError::from)?;
        let threads = count("SELECT count(*) FROM thread").map_err(StoreError::from)?;
        let last = queries.last_sequence()?;
        let packs = queries.pack_files()?;
        let total = Self::total(store, &packs);
        self.database(&reading, total)?;
        let mark = open_private(&lock(&self.partial.folder))?;
        high_water_mark::write(&mark, last);
        mark.sync_all().map_err(failed(&self.partial.folder))?;
        self.manifest.sequence = last;
        self.manifest.schema = crate::schema::version(queries.connection)?;
        let epoch = queries.erasure_epoch();
        drop(reading);
        let mut missing = Vec::new();
        for file in packs {
            match self.file(&store.folder, &file, total) {
                Err(BackupError::Store(StoreError::File { error, .. }))
                    if error.kind() == io::ErrorKind::NotFound =>
                {
                    missing.push(file.display().to_string());
                }
                copied => copied?,
            }
        }
        self.runtime_database(store)?;
        // After the database: a shared setting has no effect without its operation, but not the reverse.
        for path in shared_settings::records(&store.folder)? {
            let name = path.strip_prefix(&store.folder).unwrap_or(&path).to_owned();
            self.file(&store.folder, &name, total)?;
        }
        for name in [database(Path::new("")), lock(Path::new(""))] {
            self.add(&name)?;
        }
        Ok(Copied { epoch, operations: operations as u64, threads: threads as u64, missing })
    }

    /// The approximate number of bytes to copy.
    fn total(store: &Store, packs: &[PathBuf]) -> u64 {
        let size = |path: PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        size(database(&store.folder)) + packs.iter().map(|pack| size(store.folder.join(pack))).sum::<u64>()
    }

    fn advance(&mut self, bytes: u64, total: u64) {
        self.done += bytes;
        (self.progress)(BackupProgress { done: self.done, total: total.max(self.done) });
    }

    /// Copies the database as this transaction sees it.
    fn database(&mut self, reading: &ReadTransaction<'_>, total: u64) -> Result<(), BackupError> {
        let queries = reading.queries();
        let page: i64 = queries
            .connection
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .map_err(StoreError::from)?;
        let to = database(&self.partial.folder);
        copy_database(queries.connection, &to, &mut |pages| self.advance(pages * page as u64, total))
    }

    /// Copies the runtime database. A damaged one is left out, as losing it loses no thread.
    fn runtime_database(&mut self, store: &Store) -> Result<(), BackupError> {
        let from = runtime_database(&store.folder);
        if !from.exists() {
            return Ok(());
        }
        let to = runtime_database(&self.partial.folder);
        let copied = (|| {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&from, flags).map_err(StoreError::from)?;
            connection.busy_timeout(Duration::from_mins(1)).map_err(StoreError::from)?;
            connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema").map_err(StoreError::from)?;
            copy_database(&connection, &to, &mut |_| ())
        })();
        match copied {
            Err(BackupError::Store(error)) if error.is_damage() => {
                fs::remove_file(&to).map_err(failed(&to))?;
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => self.add(&runtime_database(Path::new(""))),
        }
    }

    /// Copies a file by its path in the store.
    fn file(&mut self, store: &Path, name: &Path, total: u64) -> Result<(), BackupError> {
        let (from, to) = (store.join(name), self.partial.folder.join(name));
        let mut source = File::open(&from).map_err(failed(&from))?;
        if let Some(parent) = to.parent() {
            private_folder(parent)?;
        }
        let mut target = open_private(&to)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; COPY_BUFFER];
        let mut bytes = 0;
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(&from)(error).into()),
            };
            hasher.update(&buffer[..read]);
            target.write_all(&buffer[..read]).map_err(failed(&to))?;
            bytes += read as u64;
            self.advance(read as u64, total);
        }
        target.sync_all().map_err(failed(&to))?;
        self.manifest.add(name, bytes, hasher.finalize());
        Ok(())
    }

    /// Lists a file that is already copied.
    fn add(&mut self, name: &Path) -> Result<(), BackupError> {
        let path = self.partial.folder.join(name);
        let (bytes, hash) = hash_file(&path, &mut |_| ()).map_err(failed(&path))?;
        self.manifest.add(name, bytes, hash);
        Ok(())
    }
}

/// Copies a database as an open transaction sees it, and syncs the copy.
fn copy_database(from: &Connection, to: &Path, advance: &mut dyn FnMut(u64)) -> Result<(), BackupError> {
    private_file(to)?;
    let copied = (|| {
        let mut target = Connection::open(to)?;
        // The copy is synced as a whole.
        target.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
        let backup = Backup::new(from, &mut target)?;
        let mut left = None;
        loop {
            let step = backup.step(PAGES_PER_STEP)?;
            let now = backup.progress();
            let before = left.replace(now.remaining).unwrap_or(now.pagecount);
            advance(u64::try_from(before - now.remaining).unwrap_or(0));
            match step {
                StepResult::Done => return Ok(()),
                // The source is read in a transaction, so nothing can hold it up for long.
                StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(20)),
                _ => {}
            }
        }
    })();
    copied.map_err(|error: rusqlite::Error| BackupError::Store(error.into()))?;
    Ok(File::open(to).and_then(|file| file.sync_all()).map_err(failed(to))?)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::File { path: path.clone(), error },
    }
}
