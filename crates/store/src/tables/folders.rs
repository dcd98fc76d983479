//! Captured folders, and file moves in progress.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use retake_model::id::{FolderId, ThreadId};
use retake_model::intent::{FolderRecord, Intent};
use rusqlite::{OptionalExtension, params};

use crate::location::{folders, open_private, private_folder};
use crate::log::queries::{Queries, decode_checked, digest};
use crate::{Store, StoreError, WriteTransaction};

/// A file move in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredIntent {
    pub number: i64,
    pub intent: Intent,
}

/// Exclusive access to the files of a folder.
#[derive(Debug)]
pub struct FolderLock {
    // The operating system releases the lock when the file is closed, also after a crash.
    _file: File,
}

impl Store {
    /// Waits for the lock on a folder.
    pub fn lock_folder(&self, folder: FolderId) -> Result<FolderLock, StoreError> {
        let file = self.folder_lock_file(folder)?;
        file.0.lock().map_err(|error| StoreError::File { path: file.1, error })?;
        Ok(FolderLock { _file: file.0 })
    }

    /// Tries to lock a folder; `None` if another process has the lock.
    pub fn try_lock_folder(&self, folder: FolderId) -> Result<Option<FolderLock>, StoreError> {
        let (file, path) = self.folder_lock_file(folder)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::File { path, error }),
        }
    }

    fn folder_lock_file(&self, folder: FolderId) -> Result<(File, PathBuf), StoreError> {
        let place = folders(&self.folder);
        private_folder(&place)?;
        let path = place.join(format!("{folder}.lock"));
        let file = open_private(&path)?;
        Ok((file, path))
    }
}

impl Queries<'_> {
    pub fn folder(&self, id: FolderId) -> Result<Option<FolderRecord>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT record, digest FROM folder WHERE key = ?1")?
            .query_row([id.key()], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))
            .optional()?;
        found.map(|(record, guard)| decode_checked(&record, guard, "folder")).transpose()
    }

    /// All captured folders.
    pub fn folders(&self) -> Result<Vec<FolderRecord>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT record, digest FROM folder ORDER BY key")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))?;
        rows.map(|row| {
            let (record, guard) = row?;
            decode_checked(&record, guard, "folder")
        })
        .collect()
    }

    /// All file moves in progress.
    pub fn intents(&self) -> Result<Vec<StoredIntent>, StoreError> {
        self.collect_intents("SELECT number, body, digest FROM intent ORDER BY number", [])
    }

    /// The file move in progress in a folder.
    pub fn intent_for_folder(&self, folder: FolderId) -> Result<Option<StoredIntent>, StoreError> {
        let sql = "SELECT number, body, digest FROM intent WHERE folder = ?1";
        Ok(self.collect_intents(sql, [folder.key()])?.into_iter().next())
    }

    /// The file move in progress for a thread.
    pub fn intent_for_thread(&self, thread: ThreadId) -> Result<Option<StoredIntent>, StoreError> {
        let sql = "SELECT number, body, digest FROM intent WHERE thread = ?1";
        Ok(self.collect_intents(sql, [thread.key()])?.into_iter().next())
    }

    fn collect_intents(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<StoredIntent>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows =
            statement.query_map(values, |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?)))?;
        rows.map(|row| {
            let (number, body, guard) = row?;
            Ok(StoredIntent { number, intent: decode_checked(&body, guard, "intent")? })
        })
        .collect()
    }
}

impl WriteTransaction<'_> {
    pub fn put_folder(&self, folder: &FolderRecord) -> Result<(), StoreError> {
        let record = minicbor::to_vec(folder).expect("encoding into memory cannot fail");
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO folder (key, record, digest) VALUES (?1, ?2, ?3)")?
            .execute(params![folder.id.key(), record, digest(&record)])?;
        Ok(())
    }

    /// Removes a folder. Its history stays in the log.
    pub fn forget_folder(&self, folder: FolderId) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM folder WHERE key = ?1")?.execute([folder.key()])?;
        Ok(())
    }

    /// Records an intent to move files; returns its number.
    pub fn put_intent(&self, intent: &Intent) -> Result<i64, StoreError> {
        let body = minicbor::to_vec(intent).expect("encoding into memory cannot fail");
        self.connection
            .prepare_cached("INSERT INTO intent (folder, thread, body, digest) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![intent.folder.key(), intent.operation.thread.key(), body, digest(&body)])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Removes an intent that was completed or never started.
    pub fn end_intent(&self, number: i64) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM intent WHERE number = ?1")?.execute([number])?;
        Ok(())
    }
}
