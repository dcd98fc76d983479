//! The problems that verification reports: a message for users and a stable code for programs.

use std::fmt;

use retake_model::content::{ContentId, Kind};
use retake_model::id::{FolderId, ThreadId};
use retake_model::operation::Version;
use serde::{Serialize, Serializer};

use crate::log::high_water_mark::LostLogEnd;

/// A problem in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// SQLite's integrity check failed.
    #[error("the database file is damaged: {message}")]
    Database {
        /// SQLite's message.
        message: String,
    },
    /// The schema of a table or an index differs from the expected one.
    #[error("the description of {name} in the database is damaged")]
    SchemaAltered {
        /// The table or index.
        name: String,
    },
    /// Some rows of a table cannot be read.
    #[error("rows {first} to {last} of table {table} cannot be read")]
    RowsUnreadable {
        /// The table.
        table: &'static str,
        /// The first key that cannot be read.
        first: i64,
        /// The last key that cannot be read.
        last: i64,
    },
    /// A whole table cannot be read.
    #[error("table {table} cannot be read: {message}")]
    TableUnreadable {
        /// The table.
        table: &'static str,
        /// SQLite's message.
        message: String,
    },
    /// Acknowledged operations are missing from the end of the log.
    #[error("{0}")]
    LogEndLost(LostLogEnd),
    /// The bytes of an object do not match its id.
    #[error("{} is damaged: its bytes do not match its id", object(*.number))]
    ObjectDamaged {
        /// Its row number, or the negative sequence number of the operation in whose bundle it is.
        number: i64,
    },
    /// An object matches its id but is malformed.
    #[error("{} ({}) is not a valid {kind:?}", object(*.number), id.short())]
    ObjectMalformed {
        /// Its row number.
        number: i64,
        /// Its expected kind.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its id.
        id: ContentId,
    },
    /// An object is missing from the index.
    #[error("{} ({}) is missing from the index", object(*.number), id.short())]
    ObjectNotIndexed {
        /// Its row number.
        number: i64,
        /// Its id.
        id: ContentId,
    },
    /// The file of a pack is missing.
    #[error("the file of pack {pack} is missing")]
    PackMissing {
        /// Its number.
        pack: i64,
    },
    /// A frame of a pack is damaged.
    #[error("pack {pack} is damaged at byte {frame}")]
    PackDamaged {
        /// Its number.
        pack: i64,
        /// Offset of the frame.
        frame: i64,
    },
    /// The index refers to an object that does not exist.
    #[error("the index refers to {}, which does not exist", object(*.number))]
    IndexStray {
        /// The row number in the index.
        number: i64,
    },
    /// Referenced content is missing.
    #[error("{kind:?} {} is missing; {by} needs it", id.short())]
    ReferenceMissing {
        /// Its kind.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its id.
        id: ContentId,
        /// One of its referrers.
        by: Referrer,
    },
    /// The bytes of an operation are damaged.
    #[error("operation {version} of {thread} is damaged")]
    OperationDamaged {
        /// Its thread.
        thread: ThreadRef,
        /// Its version, which may be damaged too.
        version: i64,
        /// Its sequence number in the store's log.
        sequence: i64,
    },
    /// Operations are missing from a log.
    #[error("the log of {thread} lacks operations {first} to {last}")]
    LogGap {
        /// Its thread.
        thread: ThreadRef,
        /// The first that is missing.
        first: Version,
        /// The last that is missing.
        last: Version,
    },
    /// An operation does not refer to the previous one.
    #[error("operation {version} of {thread} does not follow the previous one")]
    LogBroken {
        /// Its thread.
        thread: ThreadRef,
        /// The operation.
        version: Version,
    },
    /// An operation names another thread or version than its row.
    #[error("operation {version} of {thread} belongs to another thread or version")]
    OperationForeign {
        /// The thread of its row.
        thread: ThreadRef,
        /// The version of its row.
        version: Version,
    },
    /// The position of an operation in the history is wrong.
    #[error("operation {version} of {thread} has the wrong position in the history")]
    OperationMisplaced {
        /// Its thread.
        thread: ThreadRef,
        /// The operation.
        version: Version,
    },
    /// A move to an earlier version leads to another state than that version's.
    #[error("operation {version} of {thread} leads to another state than the version that it moves to")]
    StateMismatch {
        /// Its thread.
        thread: ThreadRef,
        /// The operation.
        version: Version,
    },
    /// An operation names the wrong last operation with files, so that a lookup would miss files.
    #[error("operation {version} of {thread} refers to the wrong operation as the last one with files")]
    LastFileOperationWrong {
        /// Its thread.
        thread: ThreadRef,
        /// The operation.
        version: Version,
    },
    /// A purged thread still has a log.
    #[error("{thread} was purged but still has a log")]
    PurgedThreadHasLog {
        /// The thread.
        thread: ThreadRef,
    },
    /// Some versions of a thread are incomplete.
    #[error("{versions} versions of {thread} cannot be read in full{}", newest(*.newest_complete))]
    ThreadIncomplete {
        /// The thread.
        thread: ThreadRef,
        /// Number of incomplete versions.
        versions: u64,
        /// The newest complete version.
        newest_complete: Option<Version>,
    },
    /// Some files of a thread cannot be restored completely.
    #[error("the files of {versions} versions of {thread} cannot be restored in full{}", newest(*.newest_complete))]
    FilesIncomplete {
        /// The thread.
        thread: ThreadRef,
        /// Number of versions with incomplete files.
        versions: u64,
        /// The newest version with complete files.
        newest_complete: Option<Version>,
    },
    /// The current state of a thread cannot be read.
    #[error("{thread} cannot be read: {message}")]
    ThreadUnreadable {
        /// The thread.
        thread: ThreadRef,
        /// The reason.
        message: String,
    },
    /// A list in the current state of a thread is inconsistent.
    #[error("a list in {thread} is inconsistent")]
    ListContradicts {
        /// The thread.
        thread: ThreadRef,
    },
    /// The current state of a thread violates an invariant.
    #[error("the state of {thread} is invalid: {message}")]
    StateBreaksRule {
        /// The thread.
        thread: ThreadRef,
        /// The violated rule.
        message: String,
    },
    /// A thread with a log is missing from the index of threads.
    #[error("{thread} is missing from the index of threads")]
    ThreadNotIndexed {
        /// The thread.
        thread: ThreadRef,
    },
    /// The summary of a thread in the index differs from its log.
    #[error("the index entry of {thread} differs from its log")]
    ThreadIndexDiffers {
        /// The thread.
        thread: ThreadRef,
    },
    /// The takes of a thread in the index differ from its state.
    #[error("the index entries of the takes of {thread} differ from its state")]
    TakeIndexDiffers {
        /// The thread.
        thread: ThreadRef,
    },
    /// The facets of a thread differ from its log.
    #[error("the search values (tags, branches, commits, directories) of {thread} differ from its log")]
    FacetsDiffer {
        /// The thread.
        thread: ThreadRef,
    },
    /// A row belongs to a thread that has no log.
    #[error("table {table} has rows of {thread}, which has no log")]
    StrayRows {
        /// The table.
        table: &'static str,
        /// The thread in the rows.
        thread: ThreadRef,
    },
    /// Row checksums differ from the rows.
    #[error("{count} row checksums differ from the rows")]
    RowChecksumsDiffer {
        /// Number of wrong checksums.
        count: u64,
    },
    /// The row of a project is damaged.
    #[error("the record of a project is damaged ({project})")]
    ProjectDamaged {
        /// Its key, if readable.
        project: String,
    },
    /// The row of a folder is damaged.
    #[error("the record of a folder with captured files is damaged ({folder})")]
    FolderDamaged {
        /// Its key, if readable.
        folder: String,
    },
    /// The row of a pending move of files is damaged.
    #[error("the record of the pending file move {intent} is damaged")]
    IntentDamaged {
        /// Its number.
        intent: i64,
    },
    /// The operation of a pending move of files can no longer be published.
    #[error("the pending file move {intent} does not continue the log of {thread}")]
    IntentMisplaced {
        /// Its number.
        intent: i64,
        /// The thread of its operation.
        thread: ThreadRef,
    },
    /// A record of shared settings is damaged.
    #[error("the shared settings in {path} are damaged: prompts, roles and context presets of a project")]
    SharedSettingsDamaged {
        /// The file.
        path: String,
    },
}

/// A row or object that refers to content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Referrer {
    /// Another object.
    Object {
        /// Its kind.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its id.
        id: ContentId,
    },
    /// An operation.
    Operation {
        /// Its thread.
        thread: ThreadRef,
        /// Its version.
        version: Version,
    },
    /// A folder with captured files.
    Folder {
        /// Its id.
        folder: FolderId,
    },
    /// A pending move of files.
    Intent {
        /// Its number.
        intent: i64,
    },
}

/// A thread: its number in this store, and its id if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRef {
    /// Row number in this store.
    pub number: i64,
    /// Its id, if the log contains it.
    pub id: Option<ThreadId>,
}

impl Problem {
    /// A stable code for this kind of problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Database { .. } => "database",
            Self::SchemaAltered { .. } => "schema_altered",
            Self::RowsUnreadable { .. } => "rows_unreadable",
            Self::TableUnreadable { .. } => "table_unreadable",
            Self::LogEndLost(_) => "log_end_lost",
            Self::ObjectDamaged { .. } => "object_damaged",
            Self::ObjectMalformed { .. } => "object_malformed",
            Self::ObjectNotIndexed { .. } => "object_not_indexed",
            Self::PackMissing { .. } => "pack_missing",
            Self::PackDamaged { .. } => "pack_damaged",
            Self::IndexStray { .. } => "index_stray",
            Self::ReferenceMissing { .. } => "reference_missing",
            Self::OperationDamaged { .. } => "operation_damaged",
            Self::LogGap { .. } => "log_gap",
            Self::LogBroken { .. } => "log_broken",
            Self::OperationForeign { .. } => "operation_foreign",
            Self::OperationMisplaced { .. } => "operation_misplaced",
            Self::StateMismatch { .. } => "state_mismatch",
            Self::LastFileOperationWrong { .. } => "last_file_operation_wrong",
            Self::PurgedThreadHasLog { .. } => "purged_thread_has_log",
            Self::ThreadIncomplete { .. } => "thread_incomplete",
            Self::FilesIncomplete { .. } => "files_incomplete",
            Self::ThreadUnreadable { .. } => "thread_unreadable",
            Self::ListContradicts { .. } => "list_contradicts",
            Self::StateBreaksRule { .. } => "state_breaks_rule",
            Self::ThreadNotIndexed { .. } => "thread_not_indexed",
            Self::ThreadIndexDiffers { .. } => "thread_index_differs",
            Self::TakeIndexDiffers { .. } => "take_index_differs",
            Self::FacetsDiffer { .. } => "facets_differ",
            Self::StrayRows { .. } => "stray_rows",
            Self::RowChecksumsDiffer { .. } => "row_checksums_differ",
            Self::ProjectDamaged { .. } => "project_damaged",
            Self::FolderDamaged { .. } => "folder_damaged",
            Self::IntentDamaged { .. } => "intent_damaged",
            Self::IntentMisplaced { .. } => "intent_misplaced",
            Self::SharedSettingsDamaged { .. } => "shared_settings_damaged",
        }
    }
}

impl fmt::Display for ThreadRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(formatter, "thread {}", id.short()),
            None => write!(formatter, "thread number {}", self.number),
        }
    }
}

impl fmt::Display for Referrer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { kind, id } => write!(formatter, "{kind:?} {}", id.short()),
            Self::Operation { thread, version } => write!(formatter, "operation {version} of {thread}"),
            Self::Folder { folder } => write!(formatter, "folder {}", folder.short()),
            Self::Intent { intent } => write!(formatter, "file move {intent}"),
        }
    }
}

fn newest(version: Option<Version>) -> String {
    version.map_or_else(
        || "; no version can".to_owned(),
        |version| format!("; the newest complete version is {version}"),
    )
}

// The signature that serde requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{kind:?}").to_lowercase())
}

/// An object by its place.
pub(crate) fn object(number: i64) -> String {
    if number < 0 {
        format!("an object in the bundle of operation {}", number.saturating_neg())
    } else {
        format!("object {number}")
    }
}
