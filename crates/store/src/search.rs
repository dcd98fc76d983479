//! Search: an index of the words of every entry version that ever was, in a file of its own.
//!
//! ```text
//!   retake.db   operation 1 ─ 2 ─ 3 ─ … ─ 812        the log: what each operation brought is read off it
//!                                          ▲
//!   search.db   cursor ────────────────────┘         how far the log was followed
//!               doc     thread, entry, version, role, time
//!               words   word ► docs                  FTS5, without the text
//! ```
//!
//! The index is derived. Nothing is written to it when an operation is published, so it costs a writer
//! nothing; it catches up when someone searches, or whenever someone wants it to. If it is lost, damaged, of
//! another version or of another store, it is made anew from the log, and [`SearchIndex::rebuilt`] says why.
//! It holds words and where they are, but no text: what a hit shows is read from the store, which checks
//! every byte, and the search is put to that text once more. So damage that went unnoticed can lose a hit
//! until the index is checked or rebuilt, but cannot make one up.

mod arrivals;
mod check;
mod erase;
mod file;
mod follow;
mod presence;
mod query;
mod scratch;
mod segment;
mod snippet;
mod words;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use retake_model::content::ContentId;
use rusqlite::{Transaction, TransactionBehavior};

pub use check::SearchProblem;
pub use file::Rebuilt;
pub use follow::{CaughtUp, Progress};
pub use query::{Hit, Order, Scope, SearchQuery};
pub use snippet::{Piece, Snippet};

use crate::StoreError;
use crate::queries::Queries;
use file::File;

/// How often a search that meets damage is begun again, with an index made anew.
const ATTEMPTS: usize = 3;

/// The index of words of one store.
pub struct SearchIndex {
    file: Mutex<File>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// More words than can be sought at once.
    #[error("a search has at most {limit} words; leave some out")]
    TooManyWords {
        /// The most there may be.
        limit: usize,
    },
    /// The index is in the form of another version of the program.
    #[error("another version of Retake made the search index; it will be made anew")]
    OtherVersion,
    /// The index is of another store.
    #[error("the search index belongs to another store; it will be made anew")]
    OtherStore,
    /// The index could not be used.
    #[error("the search index could not be used: {0}")]
    Index(rusqlite::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SearchIndex {
    /// Opens the index of the store in that folder, making it if there is none.
    pub fn open(folder: &Path) -> Result<Self, SearchError> {
        Ok(Self { file: Mutex::new(File::open(folder)?) })
    }

    /// Follows the log up to the moment of the reading.
    pub fn catch_up(
        &self,
        reading: &Queries<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CaughtUp, SearchError> {
        self.mending(|file| follow::follow(file, reading, progress))
    }

    /// Finds entries, catching up first.
    pub fn search(&self, reading: &Queries<'_>, query: &SearchQuery) -> Result<Vec<Hit>, SearchError> {
        let goal = reading.last_sequence()?;
        self.mending(|file| {
            loop {
                follow::follow(file, reading, &mut |_| ())?;
                let _moment = Transaction::new_unchecked(&file.connection, TransactionBehavior::Deferred)?;
                // Another program may have emptied the index just now, to make it anew.
                if follow::cursor(&file.connection)?.sequence >= goal {
                    return query::run(file, reading, query);
                }
            }
        })
    }

    /// Takes versions of entries out of the index, from all threads and for good. What was redacted is also
    /// found by itself when the index catches up; this does it at once, and leaves nothing of their words in
    /// the file.
    pub fn forget(&self, versions: &[ContentId]) -> Result<u64, SearchError> {
        self.mending(|file| {
            let removed = erase::forget(&file.connection, versions)?;
            if follow::cursor(&file.connection)?.leftovers {
                erase::erase_leftovers(&file.connection)?;
            }
            Ok(removed)
        })
    }

    /// Whether words of what was taken out are still in the file, because another program was reading.
    pub(crate) fn has_leftovers(&self) -> Result<bool, SearchError> {
        self.mending(|file| Ok(follow::cursor(&file.connection)?.leftovers))
    }

    /// Makes the index anew from the log.
    pub fn rebuild(
        &self,
        reading: &Queries<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CaughtUp, SearchError> {
        self.lock().reset(Rebuilt::Asked)?;
        self.catch_up(reading, progress)
    }

    /// Compares the index with the log, as far as it has followed it. Nothing is changed.
    pub fn check(&self, reading: &Queries<'_>) -> Result<Vec<SearchProblem>, SearchError> {
        check::check(&self.lock(), reading)
    }

    /// Why the index was made anew since it was opened, if it was.
    pub fn rebuilt(&self) -> Option<Rebuilt> {
        self.lock().rebuilt.clone()
    }

    /// Does a job; if the index turns out to be of no use, makes it anew and begins again.
    fn mending<T>(&self, mut job: impl FnMut(&mut File) -> Result<T, SearchError>) -> Result<T, SearchError> {
        let mut file = self.lock();
        for attempt in 1..ATTEMPTS {
            match job(&mut file) {
                Err(error) => match error.remedy() {
                    // Another program may have just emptied it, and not yet made the tables.
                    Some(_) if attempt == 1 && error.is_missing_table() && file.prepare().is_ok() => {}
                    Some(reason) => file.reset(reason)?,
                    None => return Err(error),
                },
                done => return done,
            }
        }
        job(&mut file)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, File> {
        // A panic elsewhere rolled its transaction back.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // A full disk is one, whichever file found no room on it.
            Some(rusqlite::ErrorCode::DiskFull) => Self::Store(StoreError::DiskFull),
            _ => Self::Index(error),
        }
    }
}

impl SearchError {
    /// Why the index must be made anew; `None` if that would not help.
    fn remedy(&self) -> Option<Rebuilt> {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::OtherVersion => Some(Rebuilt::OtherVersion),
            Self::OtherStore => Some(Rebuilt::OtherStore),
            Self::Index(error) => {
                let damaged = matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase));
                let strange = matches!(
                    error,
                    rusqlite::Error::QueryReturnedNoRows
                        | rusqlite::Error::InvalidColumnType(..)
                        | rusqlite::Error::FromSqlConversionFailure(..)
                        | rusqlite::Error::IntegralValueOutOfRange(..)
                );
                (damaged || strange || self.is_missing_table()).then(|| Rebuilt::Damaged(error.to_string()))
            }
            _ => None,
        }
    }

    /// Whether SQLite did not know what a statement is about: a table or a column that should be there is
    /// not.
    fn is_missing_table(&self) -> bool {
        matches!(self, Self::Index(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, ErrorCode};

    use super::*;

    #[test]
    fn an_index_that_finds_no_room_says_that_the_disk_is_full() {
        let small = Connection::open_in_memory().expect("there is memory");
        small.execute_batch("PRAGMA max_page_count = 4; CREATE TABLE word (text TEXT)").expect("it fits");
        let error = small.execute("INSERT INTO word VALUES (zeroblob(100000))", []).expect_err("no room");
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull));
        assert!(matches!(SearchError::from(error), SearchError::Store(StoreError::DiskFull)));
        // The control: what else fails is the index's own.
        let error = small.execute("INSERT INTO nothing VALUES (1)", []).expect_err("no table");
        assert!(matches!(SearchError::from(error), SearchError::Index(_)));
    }
}
