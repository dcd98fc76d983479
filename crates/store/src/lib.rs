//! Retake's durable store: one SQLite database that several programs use at once, with no daemon.
//!
//! ```text
//!   object      number | kind | bytes              immutable content, named by its hash
//!   operation   sequence | thread | version | …    the log of every thread: the truth
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   object_index, thread, take, facet              derived from the two above; can be rebuilt
//!   redaction, lost, quarantine                    what is gone, on purpose or not, and what was put aside
//!   search.db   words ► entry versions             derived too, in a file of its own
//!   ledger.db   what agents do, and have said      not history: see `ledger`
//! ```
//!
//! Writing goes through one writer per process, which gathers what is waiting into one
//! transaction with one sync. Between processes, writers queue on a lock file; readers never wait, and see
//! the store as it was when they began ([`Reading`]). Nothing is acknowledged before SQLite has synced it.

mod budget;
mod cache;
mod collect;
mod derive;
mod erasing;
mod facets;
mod folders;
mod head;
mod index;
mod ledger;
mod listing;
mod location;
mod maintenance;
mod mark;
mod objects;
mod open;
mod operations;
mod packs;
mod presentation;
mod projects;
mod publish;
mod purge;
mod queries;
mod reach;
mod reading;
mod redact;
mod repair;
mod salvage;
mod scan;
mod schema;
mod seal;
mod search;
mod shared_settings;
mod shares;
mod tail;
mod takes;
mod tally;
mod threads;
mod verify;
mod whole;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub use budget::{BudgetState, Usage};
pub use collect::{Collected, Mode};
pub use facets::Facet;
pub use folders::{FolderLock, StoredIntent};
pub use head::Head;
pub use ledger::{
    Alive, Begun, Comm, CommFilter, DecisionSent, Leases, Ledger, LedgerStamp, NewComm, TurnLease,
};
pub use listing::{Listing, ThreadPlace};
pub use location::Permissions;
pub use maintenance::LogState;
pub use mark::LostEnd;
pub use open::OpenError;
pub use operations::{LogRow, StoredOperation};
pub use packs::{PackWriter, PackedBatch};
pub use presentation::Shown;
pub use projects::ProjectRow;
pub use publish::{Publication, PublishError, Published};
pub use purge::Purged;
pub use queries::Queries;
pub use reading::Reading;
pub use redact::{RedactError, Redacted, SecretLocation, Secrets};
pub use repair::{Change, Repaired};
pub use salvage::{Salvaged, UnreadableRows};
pub use schema::CURRENT as SCHEMA_VERSION;
pub use seal::{OpenSealedError, Sealer};
pub use search::{
    CaughtUp, Hit, Order, Piece, Progress, Rebuilt, Scope, SearchError, SearchIndex, SearchProblem,
    SearchQuery, Snippet,
};
pub use shared_settings::{FormerPreset, SettingScope, SharedSettings, SharedValue};
pub use shares::Share;
pub use tail::Tail;
pub use takes::TakeRow;
pub use threads::{Deleted, Only, ThreadFilter, ThreadRow};
pub use verify::{Holder, MaintenanceProgress, Problem, Stage, Verified, WhichThread};
pub use writer::{WriteError, Writing};

use cache::Cache;
use writer::Writer;

/// A store that is open.
pub struct Store {
    folder: PathBuf,
    cache: Arc<Cache>,
    readers: Mutex<Vec<rusqlite::Connection>>,
    writer: Writer,
}

/// The store failed. What was asked for was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk is full.
    #[error("the disk is full; nothing was changed. Free some space and try again")]
    DiskFull,
    /// The disk failed in the very last step, so what is on it is not known.
    #[error(
        "the disk failed while the change was being made durable, so it is not known whether it was made; \
         start the program again, look, and run `retake verify`"
    )]
    Unsure,
    /// A sync failed earlier, and a later one could succeed falsely.
    #[error(
        "the disk failed while writing; nothing more is written until the program is started again, and `retake verify` should be run then"
    )]
    Poisoned,
    /// A defect in Retake: the code that computes a change panicked. It was rolled back, and the store can be used.
    #[error(
        "Retake failed with an internal error ({0}); the change was not made and the store is as it was. \
         Please report this as a bug"
    )]
    Panicked(String),
    /// The database is damaged.
    #[error(
        "the store is damaged ({0}); `retake verify` says where, `retake repair` mends what can be mended"
    )]
    Damaged(String),
    /// A newer program wrote a file beside the database.
    #[error(
        "{file} was written by a newer Retake (form {found}; this program knows {known}). \
         It was left as it is: update this program"
    )]
    Newer {
        /// Which file.
        file: &'static str,
        /// Its form.
        found: i64,
        /// The form that this program knows.
        known: i64,
    },
    /// Another program has the store open, and this needs it alone.
    #[error("another program is using this store; close it and try again")]
    InUse,
    /// Anything else that SQLite reports.
    #[error("the store failed: {0}")]
    Database(rusqlite::Error),
    /// A file beside the database could not be used.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What happened.
        error: std::io::Error,
    },
    /// Content could not be read.
    #[error(transparent)]
    Unavailable(#[from] retake_model::object::Unavailable),
}

impl Store {
    /// The folder that the store lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl StoreError {
    /// The panic of a job, by what it said.
    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    }

    /// Whether this says that bytes on disk are not what they should be, as opposed to any other failure.
    pub(crate) fn is_damage(&self) -> bool {
        use retake_model::object::Unavailable;
        match self {
            Self::Damaged(_)
            | Self::Unavailable(Unavailable::Missing { .. } | Unavailable::Damaged { .. }) => true,
            Self::Unavailable(Unavailable::Unreadable(error)) => {
                error.downcast_ref::<Self>().is_some_and(Self::is_damage)
            }
            Self::Database(error) => scan::is_damage(error),
            Self::DiskFull
            | Self::Unsure
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
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
        match error.sqlite_error_code() {
            Some(DiskFull) => Self::DiskFull,
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

impl From<StoreError> for retake_model::object::Unavailable {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(unavailable) => unavailable,
            other => Self::Unreadable(Arc::new(other)),
        }
    }
}
