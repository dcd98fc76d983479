//! What can be wrong with a store, as types: a sentence for people, a code for programs.

use std::fmt;

use retake_model::content::{ContentId, Kind};
use retake_model::id::{FolderId, ThreadId};
use retake_model::operation::Version;
use serde::{Serialize, Serializer};

use crate::mark::LostEnd;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// SQLite's own check found its structures damaged.
    #[error("the database file is damaged: {message}")]
    Database {
        /// What SQLite says.
        message: String,
    },
    /// The description of a table or an index is not what was written.
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
        /// The last one.
        last: i64,
    },
    /// A whole table cannot be read.
    #[error("table {table} cannot be read: {message}")]
    TableUnreadable {
        /// The table.
        table: &'static str,
        /// What SQLite says.
        message: String,
    },
    /// Operations that were acknowledged are missing from the end of the log.
    #[error("{0}")]
    LogEndLost(LostEnd),
    /// The bytes of an object are not the ones that were stored.
    #[error("object {number} is damaged: its bytes are not what its name says")]
    ObjectDamaged {
        /// Its row.
        number: i64,
    },
    /// An object is stored under its right name and is nothing that Retake knows.
    #[error("object {number} ({}) is not a well-formed {kind:?}", id.short())]
    ObjectMalformed {
        /// Its row.
        number: i64,
        /// What it should be.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// An object cannot be found by its name.
    #[error("object {number} ({}) is missing from the index", id.short())]
    ObjectNotIndexed {
        /// Its row.
        number: i64,
        /// Its name.
        id: ContentId,
    },
    /// A file with bulk content is gone.
    #[error("the file of pack {pack} is missing")]
    PackMissing {
        /// Its number.
        pack: i64,
    },
    /// Bulk content is not what was stored.
    #[error("pack {pack} is damaged at byte {frame}")]
    PackDamaged {
        /// Its number.
        pack: i64,
        /// Where.
        frame: i64,
    },
    /// The index knows an object that is not there.
    #[error("the index names object {number}, which does not exist")]
    IndexStray {
        /// The row it names.
        number: i64,
    },
    /// Content that something needs is not there.
    #[error("{kind:?} {} is missing; {by} needs it", id.short())]
    ReferenceMissing {
        /// What it is.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its name.
        id: ContentId,
        /// One of those that need it.
        by: Holder,
    },
    /// An operation's bytes are not the ones that were stored.
    #[error("operation {version} of {thread} is damaged")]
    OperationDamaged {
        /// Whose it is.
        thread: WhichThread,
        /// Its version, as far as that can be trusted.
        version: i64,
        /// Its place among all operations.
        sequence: i64,
    },
    /// Operations are missing from a log.
    #[error("the log of {thread} lacks operations {first} to {last}")]
    LogGap {
        /// Whose log.
        thread: WhichThread,
        /// The first that is missing.
        first: Version,
        /// The last that is missing.
        last: Version,
    },
    /// An operation does not follow the one before it.
    #[error("operation {version} of {thread} does not follow the one before it")]
    LogBroken {
        /// Whose log.
        thread: WhichThread,
        /// The operation.
        version: Version,
    },
    /// An operation belongs to another thread, or says that it has another version.
    #[error("operation {version} of {thread} belongs elsewhere")]
    OperationForeign {
        /// In whose log it stands.
        thread: WhichThread,
        /// Where it stands there.
        version: Version,
    },
    /// An operation's place among the changes is not where history puts it.
    #[error("operation {version} of {thread} is not in its place in history")]
    OperationMisplaced {
        /// Whose log.
        thread: WhichThread,
        /// The operation.
        version: Version,
    },
    /// An operation went back to a moment, and not to that moment's state.
    #[error("operation {version} of {thread} leads to another state than the moment that it goes to")]
    StateMismatch {
        /// Whose log.
        thread: WhichThread,
        /// The operation.
        version: Version,
    },
    /// An operation does not name the last one before it that has files; whoever looks for files would miss some.
    #[error("operation {version} of {thread} names the wrong operation as the last one with files")]
    FiledWrong {
        /// Whose log.
        thread: WhichThread,
        /// The operation.
        version: Version,
    },
    /// A log stands beside the mark that its thread was purged.
    #[error("{thread} was purged, and has a log")]
    PurgedThreadHasLog {
        /// Whose log.
        thread: WhichThread,
    },
    /// Some states of a thread cannot be read in full.
    #[error("{versions} versions of {thread} cannot be read in full{}", newest(*.newest_whole))]
    ThreadIncomplete {
        /// Which thread.
        thread: WhichThread,
        /// How many of its versions.
        versions: u64,
        /// The newest version that can be read in full.
        newest_whole: Option<Version>,
    },
    /// Some files of a thread cannot be had back in full.
    #[error("the files of {versions} versions of {thread} cannot be restored in full{}", newest(*.newest_whole))]
    FilesIncomplete {
        /// Which thread.
        thread: WhichThread,
        /// How many of its versions that have files.
        versions: u64,
        /// The newest version whose files can be restored in full.
        newest_whole: Option<Version>,
    },
    /// The present state of a thread cannot be reached through the database.
    #[error("{thread} cannot be read: {message}")]
    ThreadUnreadable {
        /// Which thread.
        thread: WhichThread,
        /// What stands in the way.
        message: String,
    },
    /// A list in the present state of a thread contradicts itself.
    #[error("a list in {thread} contradicts itself")]
    ListContradicts {
        /// Which thread.
        thread: WhichThread,
    },
    /// The present state of a thread is one that no command makes.
    #[error("the state of {thread} breaks a rule: {message}")]
    StateBreaksRule {
        /// Which thread.
        thread: WhichThread,
        /// Which rule.
        message: String,
    },
    /// A thread has a log and is not in the index of threads.
    #[error("{thread} is missing from the index of threads")]
    ThreadNotIndexed {
        /// Which thread.
        thread: WhichThread,
    },
    /// What lists show of a thread is not what its log says.
    #[error("what the index shows of {thread} differs from its log")]
    ThreadIndexDiffers {
        /// Which thread.
        thread: WhichThread,
    },
    /// What the tree shows of a thread's takes is not what its state says.
    #[error("what the index shows of the takes of {thread} differs from its state")]
    TakeIndexDiffers {
        /// Which thread.
        thread: WhichThread,
    },
    /// What a thread is found by is not what its log says.
    #[error("what {thread} is found by differs from its log")]
    FacetsDiffer {
        /// Which thread.
        thread: WhichThread,
    },
    /// A row belongs to a thread that has no log.
    #[error("table {table} has rows of {thread}, which has no log")]
    StrayRows {
        /// The table.
        table: &'static str,
        /// The thread that the rows name.
        thread: WhichThread,
    },
    /// What searches should find is not what they find.
    #[error("{count} tallies of what lists should show differ from the rows that there are")]
    TalliesDiffer {
        /// How many.
        count: u64,
    },
    /// A project's row is not what was written.
    #[error("a project's row is damaged ({project})")]
    ProjectDamaged {
        /// Its key, as far as it can be read.
        project: String,
    },
    /// A folder's row is not what was written.
    #[error("the row of a folder that files are kept of is damaged ({folder})")]
    FolderDamaged {
        /// Its key, as far as it can be read.
        folder: String,
    },
    /// What was written down of a move of files is not what was written.
    #[error("the row of move of files {intent}, which has begun and not ended, is damaged")]
    IntentDamaged {
        /// Its number.
        intent: i64,
    },
    /// A move of files has begun whose operation cannot be published any more.
    #[error("move of files {intent} has begun and does not go on from the end of the log of {thread}")]
    IntentMisplaced {
        /// Its number.
        intent: i64,
        /// Whose operation it leads to.
        thread: WhichThread,
    },
    /// The record of settings that threads share is not what was written.
    #[error("the shared settings in {path} are damaged: prompts, roles and context presets of a project")]
    SharedSettingsDamaged {
        /// The file.
        path: String,
    },
}

/// What needs some content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Holder {
    /// Other content.
    Object {
        /// What that is.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// An operation.
    Operation {
        /// Whose.
        thread: WhichThread,
        /// Its version.
        version: Version,
    },
    /// A folder that files are kept of.
    Folder {
        /// Which.
        folder: FolderId,
    },
    /// A move of files that has begun.
    Intent {
        /// Its number.
        intent: i64,
    },
}

/// A thread, by its identity where that is known, and by its number in this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhichThread {
    /// Its number in this store.
    pub number: i64,
    /// Its identity, where the log says it.
    pub id: Option<ThreadId>,
}

impl Problem {
    /// A name for this kind of problem that does not change.
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
            Self::FiledWrong { .. } => "filed_wrong",
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
            Self::TalliesDiffer { .. } => "tallies_differ",
            Self::ProjectDamaged { .. } => "project_damaged",
            Self::FolderDamaged { .. } => "folder_damaged",
            Self::IntentDamaged { .. } => "intent_damaged",
            Self::IntentMisplaced { .. } => "intent_misplaced",
            Self::SharedSettingsDamaged { .. } => "shared_settings_damaged",
        }
    }
}

impl fmt::Display for WhichThread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(formatter, "thread {}", id.short()),
            None => write!(formatter, "thread number {}", self.number),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { kind, id } => write!(formatter, "{kind:?} {}", id.short()),
            Self::Operation { thread, version } => write!(formatter, "operation {version} of {thread}"),
            Self::Folder { folder } => write!(formatter, "folder {}", folder.short()),
            Self::Intent { intent } => write!(formatter, "move of files {intent}"),
        }
    }
}

fn newest(version: Option<Version>) -> String {
    version.map_or_else(|| "; none can".to_owned(), |version| format!("; the newest that can is {version}"))
}

// The shape that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{kind:?}").to_lowercase())
}
