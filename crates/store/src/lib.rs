//! Retake's durable store: one SQLite database that several processes use at once, without a daemon.
//!
//! ```text
//!   object      number | kind | bytes              immutable content, named by its hash
//!   operation   sequence | thread | version | …    the log of every thread: the truth
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   object_index, thread, take, facet              derived from the two above; can be rebuilt
//!   redaction, lost, quarantine                    destroyed or lost content, and rows that a repair moved aside
//!   search.db   words ► entry versions             derived too, in a separate file
//!   ledger.db   running turns, trace, sessions     not history: see `runtime`
//! ```
//!
//! One writer per process combines queued writes into one transaction with one sync. Writers of different processes
//! queue on a lock file. Readers never wait, and see the store as of the start of their
//! [`ReadTransaction`]. A write is acknowledged only after SQLite has synced it.

mod location;
mod log;
mod maintenance;
mod objects;
mod open;
pub mod runtime;
mod schema;
mod search;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub use location::Permissions;
pub use log::head::ThreadHead;
pub use log::high_water_mark::LostLogEnd;
pub use log::operations::{LogRow, StoredOperation};
pub use log::publish::{Publication, PublishError, PublishedOperation};
pub use log::queries::Queries;
pub use log::read_transaction::ReadTransaction;
pub use log::tail::Tail;
pub use log::writer::{WriteError, WriteTransaction};
pub use maintenance::backup::{
    BackupCheck, BackupError, BackupKeyState, BackupProblem, BackupProgress, BackupReport,
};
pub use maintenance::budget::{BudgetState, StoreUsage};
pub use maintenance::collect::{CollectMode, CollectReport};
pub use maintenance::exclusive::WalState;
pub use maintenance::purge::PurgeReport;
pub use maintenance::redact::{RedactError, RedactionReport, SecretLocation, Secrets};
pub use maintenance::repair::{RepairChange, RepairReport};
pub use maintenance::salvage::{SalvageReport, UnreadableRows};
pub use maintenance::verify::{
    MaintenanceProgress, MaintenanceStage, Problem, Referrer, ThreadRef, VerifyReport,
};
pub use objects::packs::{PackWriter, PackedBatch};
pub use objects::seal::{OpenSealedError, Sealer};
pub use open::OpenError;
pub use schema::CURRENT as SCHEMA_VERSION;
pub use search::{
    CatchUpReport, Hit, Progress, RebuildReason, SearchError, SearchIndex, SearchOrder, SearchProblem,
    SearchQuery, SearchScope, Snippet, SnippetPiece,
};
pub use tables::facets::Facet;
pub use tables::folders::{FolderLock, StoredIntent};
pub use tables::presentation::EntryPresentation;
pub use tables::project_usage::ProjectUsage;
pub use tables::projects::ProjectRow;
pub use tables::shared_settings::{FormerPreset, SettingScope, SharedSettings, SharedValue};
pub use tables::takes::TakeRow;
pub use tables::thread_list::{ListPosition, ThreadList};
pub use tables::threads::{DeletedFilter, ThreadFilter, ThreadRow, ThreadSelection};

use log::writer::Writer;
use objects::cache::Cache;

pub struct Store {
    folder: PathBuf,
    cache: Arc<Cache>,
    /// Opens a connection for reading.
    connect: fn(&Path) -> Result<rusqlite::Connection, StoreError>,
    readers: Mutex<Vec<rusqlite::Connection>>,
    writer: Writer,
    /// The schema version when the store was opened.
    schema: i64,
}

/// An error of the store. The request had no effect.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full.
    #[error("the disk of the store is full, and nothing was stored; free some space and try again")]
    DiskFull,
    /// The disk failed in the last step, so the state on disk is unknown.
    #[error(
        "the disk failed while writing the change, so the change may or may not be stored; \
         restart the program, check the last change, and run `retake verify`"
    )]
    OutcomeUnknown,
    /// A sync failed earlier; a later one could succeed falsely.
    #[error(
        "the disk failed while writing, so Retake stopped writing; restart the program and run `retake verify`"
    )]
    Poisoned,
    /// A bug in Retake: a job panicked. Its writes were rolled back, and the store can still be used.
    #[error(
        "Retake failed with an internal error ({0}); the change was not made and the store is as it was. \
         Please report this as a bug"
    )]
    Panicked(String),
    /// The database is damaged.
    #[error("the store is damaged ({0}); `retake verify` lists the damage, `retake repair` repairs it")]
    Damaged(String),
    /// A newer version of Retake wrote a file next to the database.
    #[error(
        "{file} was written by a newer Retake (format {found}; this program supports {known}). \
         It was not changed: update this program"
    )]
    Newer {
        file: &'static str,
        /// Its format version.
        found: i64,
        /// The format version that this program supports.
        known: i64,
    },
    /// Another process has the store open, and this operation needs exclusive access.
    #[error("another program is using this store; close it and try again")]
    InUse,
    /// Any other SQLite error.
    #[error("the store failed: {0}")]
    Database(rusqlite::Error),
    /// A file next to the database could not be used.
    #[error("{path}: {error}", path = .path.display())]
    File { path: PathBuf, error: std::io::Error },
    /// Content could not be read.
    #[error(transparent)]
    Unavailable(#[from] retake_model::object::ObjectError),
}

impl Store {
    /// The folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl StoreError {
    /// A job's panic, with its message.
    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    }

    /// Whether bytes on disk are damaged, as opposed to any other failure.
    pub(crate) fn is_damage(&self) -> bool {
        use retake_model::object::ObjectError;
        match self {
            Self::Damaged(_)
            | Self::Unavailable(ObjectError::Missing { .. } | ObjectError::Damaged { .. }) => true,
            Self::Unavailable(ObjectError::Unreadable(error)) => {
                error.downcast_ref::<Self>().is_some_and(Self::is_damage)
            }
            // SQLite reports a damaged sector as damage. Other failed reads may succeed later, and end a transaction.
            Self::Database(_)
            | Self::DiskFull
            | Self::OutcomeUnknown
            | Self::Poisoned
            | Self::Panicked(_)
            | Self::InUse
            | Self::Newer { .. }
            | Self::File { .. } => false,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            _ if is_full_disk(&error) => Self::DiskFull,
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

/// Whether a disk is full. SQLite reports that as an I/O error where it makes room for the index of the write-ahead log,
/// which every first reader needs.
fn is_full_disk(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_SHMSIZE};
    error.sqlite_error().is_some_and(|code| [SQLITE_FULL, SQLITE_IOERR_SHMSIZE].contains(&code.extended_code))
}

impl From<StoreError> for retake_model::object::ObjectError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(unavailable) => unavailable,
            other => Self::Unreadable(Arc::new(other)),
        }
    }
}
