//! Full-text search over every version of every entry, in a separate file.
//!
//! ```text
//!   retake.db   operation 1 ─ 2 ─ 3 ─ … ─ 812        the log
//!                                          ▲
//!   search.db   cursor ────────────────────┘         the last indexed operation
//!               doc     thread, entry, version, role, time
//!               words   word ► docs                  FTS5, without the text
//! ```
//!
//! The index is derived. Publishing an operation does not touch it, so it costs a writer nothing; it catches up before a search. If it is missing, damaged, of another version or of another store, it is rebuilt from the log, and [`SearchIndex::rebuild_reason`] tells why. It stores words and their locations, but no text: the text of a hit is read from the store, which checks every byte, and matched again. So undetected damage can hide a hit until the index is rebuilt, but cannot invent one.

mod check;
mod docs;
mod erase;
mod expression;
mod file;
mod follow;
mod new_versions;
mod positions;
mod query;
mod scratch;
mod segment;
mod snippet;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use retake_model::content::ContentId;
use rusqlite::{Transaction, TransactionBehavior};

pub use check::SearchProblem;
pub use file::RebuildReason;
pub use follow::{CatchUpReport, Progress};
pub use query::{Hit, SearchOrder, SearchQuery, SearchScope};
pub use snippet::{Snippet, SnippetPiece};

use crate::log::queries::Queries;
use crate::{StoreError, is_full_disk};
use file::IndexFile;

/// How often a search retries with a rebuilt index.
const ATTEMPTS: usize = 3;

/// The full-text index of a store.
pub struct SearchIndex {
    file: Mutex<IndexFile>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// More words than a search may have.
    #[error("a search has at most {limit} words; use fewer")]
    TooManyWords { limit: usize },
    /// The index has the format of another version.
    #[error("the search index was made by another version of Retake and will be rebuilt")]
    OtherVersion,
    /// The index belongs to another store.
    #[error("the search index belongs to another store and will be rebuilt")]
    OtherStore,
    #[error("the search index could not be used: {0}")]
    Index(rusqlite::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SearchIndex {
    /// Opens the index of the store in this folder; creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self, SearchError> {
        Ok(Self { file: Mutex::new(IndexFile::open(folder)?) })
    }

    /// Indexes the log up to a read transaction.
    pub fn catch_up(
        &self,
        reading: &Queries<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CatchUpReport, SearchError> {
        self.with_rebuild(|file| follow::follow(file, reading, progress))
    }

    /// Catches up, then searches.
    pub fn search(&self, reading: &Queries<'_>, query: &SearchQuery) -> Result<Vec<Hit>, SearchError> {
        let goal = reading.last_sequence()?;
        self.with_rebuild(|file| {
            loop {
                follow::follow(file, reading, &mut |_| ())?;
                let _transaction =
                    Transaction::new_unchecked(&file.connection, TransactionBehavior::Deferred)?;
                // Another process may have just emptied the index to rebuild it.
                if follow::cursor(&file.connection)?.sequence >= goal {
                    return query::run(file, reading, query);
                }
            }
        })
    }

    /// Removes entry versions from the index, in all threads and permanently. Catching up removes redacted versions
    /// too; this does it at once, and erases their words from the file.
    pub fn forget(&self, versions: &[ContentId]) -> Result<u64, SearchError> {
        self.with_rebuild(|file| {
            let removed = erase::forget(&file.connection, versions)?;
            if follow::cursor(&file.connection)?.leftovers {
                erase::erase_leftovers(&file.connection)?;
            }
            Ok(removed)
        })
    }

    /// Whether words of removed versions are still in the file, because another process was reading.
    pub(crate) fn has_leftovers(&self) -> Result<bool, SearchError> {
        self.with_rebuild(|file| Ok(follow::cursor(&file.connection)?.leftovers))
    }

    /// Rebuilds the index from the log.
    pub fn rebuild(
        &self,
        reading: &Queries<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CatchUpReport, SearchError> {
        self.lock().reset(RebuildReason::Requested)?;
        self.catch_up(reading, progress)
    }

    /// Compares the index with the log, up to the cursor. Changes nothing.
    pub fn check(&self, reading: &Queries<'_>) -> Result<Vec<SearchProblem>, SearchError> {
        check::check(&self.lock(), reading)
    }

    /// Why the index was rebuilt since it was opened, if it was.
    pub fn rebuild_reason(&self) -> Option<RebuildReason> {
        self.lock().rebuilt.clone()
    }

    /// Runs a job; if the index is unusable, rebuilds it and runs the job again.
    fn with_rebuild<T>(
        &self,
        mut job: impl FnMut(&mut IndexFile) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let mut file = self.lock();
        for attempt in 1..ATTEMPTS {
            match job(&mut file) {
                Err(error) => match error.reason_to_rebuild() {
                    // Another process may have just emptied it, and not created the tables yet.
                    Some(_) if attempt == 1 && error.is_missing_table() && file.prepare().is_ok() => {}
                    Some(reason) => file.reset(reason)?,
                    None => return Err(error),
                },
                done => return done,
            }
        }
        job(&mut file)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexFile> {
        // A panic elsewhere rolled its transaction back.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        // A full disk is reported as such, whichever file was written.
        if is_full_disk(&error) { Self::Store(StoreError::DiskFull) } else { Self::Index(error) }
    }
}

impl SearchError {
    /// Why the index must be rebuilt; `None` if that would not help.
    fn reason_to_rebuild(&self) -> Option<RebuildReason> {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::OtherVersion => Some(RebuildReason::OtherVersion),
            Self::OtherStore => Some(RebuildReason::OtherStore),
            Self::Index(error) => {
                let damaged = matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase));
                let strange = matches!(
                    error,
                    rusqlite::Error::QueryReturnedNoRows
                        | rusqlite::Error::InvalidColumnType(..)
                        | rusqlite::Error::FromSqlConversionFailure(..)
                        | rusqlite::Error::IntegralValueOutOfRange(..)
                );
                (damaged || strange || self.is_missing_table())
                    .then(|| RebuildReason::Damaged(error.to_string()))
            }
            _ => None,
        }
    }

    /// Whether a table or column is missing.
    fn is_missing_table(&self) -> bool {
        matches!(self, Self::Index(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, ErrorCode};

    use super::*;

    #[test]
    fn a_full_disk_is_reported_as_such() {
        let small = Connection::open_in_memory().expect("a database in memory");
        small.execute_batch("PRAGMA max_page_count = 4; CREATE TABLE word (text TEXT)").expect("it fits");
        let error = small.execute("INSERT INTO word VALUES (zeroblob(100000))", []).expect_err("no room");
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull));
        assert!(matches!(SearchError::from(error), SearchError::Store(StoreError::DiskFull)));
        // Without space for the index of the write-ahead log, nothing can be read either.
        let no_room = || {
            rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_SHMSIZE),
                None,
            )
        };
        assert!(matches!(SearchError::from(no_room()), SearchError::Store(StoreError::DiskFull)));
        assert!(matches!(StoreError::from(no_room()), StoreError::DiskFull));
        // Control: other failures are errors of the index.
        let error = small.execute("INSERT INTO nothing VALUES (1)", []).expect_err("no table");
        assert!(matches!(SearchError::from(error), SearchError::Index(_)));
    }
}
