//! Repairs a store: rebuilds everything that can be derived, and reports losses.
//!
//! ```text
//!   objects      quarantine damaged ones; rebuild the index
//!   logs         move rows back to the thread and version in their bytes; join logs with gaps
//!   states       replace lost entries by notes, or continue a thread from its newest readable state
//!   folders      drop damaged rows; the next snapshot of the folder replaces them
//!   derived      rebuild thread, take and facet rows from the logs
//! ```
//!
//! Nothing is deleted. Unusable rows move to the table `quarantine`; lost content is recorded in `lost`, so that a later check distinguishes old losses from new ones. All of it is one transaction.
//!
//! If SQLite cannot read the file, rows are first [`salvaged`](crate::maintenance::salvage) into a new one.
//!
//! The full-text index follows the log, but should be rebuilt after a repair that changed a log.

mod cells;
mod derived;
mod folders;
mod logs;
mod objects;
mod states;

use std::fmt;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::NewObject;
use retake_model::operation::Version;
use retake_model::settings::Settings;
use retake_model::time::Timestamp;
use serde::Serialize;

use crate::log::high_water_mark::LostLogEnd;
use crate::maintenance::salvage::SalvageReport;
use crate::maintenance::verify::{
    Logs, MaintenanceProgress, ThreadRef, check_file, kind_name, object, read_logs,
};
use crate::{Store, StoreError, WriteTransaction};

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepairReport {
    /// The result of a salvage, if the file was damaged.
    pub salvaged: Option<SalvageReport>,
    /// Every change, in order.
    pub changes: Vec<RepairChange>,
}

/// A change made by a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepairChange"))]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairChange {
    /// Rows of the object index were added or removed.
    IndexRepaired { rows: u64 },
    /// A damaged object was moved to quarantine.
    ObjectQuarantined { number: i64 },
    /// Referenced content is lost.
    ContentLost {
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        id: ContentId,
    },
    /// Content that was recorded as lost is stored again.
    ContentFound { id: ContentId },
    /// An operation was stored under a wrong thread, version or id, and was corrected.
    OperationReturned { thread: ThreadRef, version: Version },
    /// A log had a gap. Later operations were appended again with new versions; the old rows are in quarantine.
    LogJoined {
        thread: ThreadRef,
        /// The first version that differs.
        from: Version,
        /// Operations that were appended again.
        kept: u64,
        /// Operations that are lost.
        lost: u64,
    },
    /// Acknowledged operations at the end of the log are lost.
    LogEndLost(LostLogEnd),
    /// An entry of the current state was lost and replaced by a note.
    EntryReplaced { thread: ThreadRef, take: TakeId, entry: EntryId },
    /// Entries of the current state were lost, and their ids are unknown.
    EntriesLost { thread: ThreadRef, take: TakeId, count: u64 },
    /// The current state could not be read; the newest readable one is current now.
    ThreadRolledBack {
        thread: ThreadRef,
        /// The version that cannot be read.
        from: Version,
        /// The version that is current now.
        to: Version,
    },
    /// No state of a thread could be read. The thread is empty now; its log stays.
    ThreadEmptied { thread: ThreadRef },
    /// No operation of a thread could be read.
    ThreadLost { thread: ThreadRef },
    /// The derived rows of a thread were rebuilt.
    ThreadIndexRebuilt { thread: ThreadRef },
    /// Rows without a log were removed.
    StrayRowsRemoved {
        table: &'static str,
        /// The thread in the rows.
        thread: ThreadRef,
    },
    /// Row checksums were rebuilt.
    RowChecksumsRebuilt {
        /// The number of wrong checksums.
        count: u64,
    },
    /// A damaged project row was accepted as it is.
    ProjectRowAccepted {
        /// Its recorded path.
        path: String,
    },
    /// An unreadable project row was moved to quarantine.
    ProjectQuarantined {
        /// Its key, as far as it can be read.
        project: String,
    },
    /// A damaged folder row was dropped; the next snapshot of the folder replaces it.
    FolderForgotten {
        /// Its key, as far as it can be read.
        folder: String,
    },
    /// A damaged file move in progress was dropped. The files stay as they are; the next snapshot records them as
    /// changed by the user.
    IntentDropped { intent: i64 },
    /// A damaged record of shared settings was moved aside. Each thread keeps its own settings.
    SharedSettingsQuarantined { path: String },
}

impl RepairReport {
    /// Whether no repair was necessary.
    pub fn is_unchanged(&self) -> bool {
        self.salvaged.is_none() && self.changes.is_empty()
    }

    /// The changes that record a loss.
    pub fn losses(&self) -> impl Iterator<Item = &RepairChange> {
        self.changes.iter().filter(|change| {
            matches!(
                change,
                RepairChange::ContentLost { .. }
                    | RepairChange::ThreadLost { .. }
                    | RepairChange::LogJoined { lost: 1.., .. }
                    | RepairChange::ProjectQuarantined { .. }
                    | RepairChange::SharedSettingsQuarantined { .. }
            )
        })
    }
}

/// The most passes of a repair; a pass may make further damage readable.
const MAX_ROUNDS: usize = 3;

impl Store {
    /// Repairs the store. The result lists all changes and losses.
    pub fn repair(
        &self,
        progress: &mut dyn FnMut(MaintenanceProgress),
        now: Timestamp,
    ) -> Result<RepairReport, StoreError> {
        let repaired = self.repair_content(progress, now)?;
        let mut repaired = self.accept_lost_end(repaired)?;
        let aside = self.quarantine_shared_settings()?.into_iter();
        repaired.changes.extend(
            aside.map(|path| RepairChange::SharedSettingsQuarantined { path: path.display().to_string() }),
        );
        // One repair may reveal further damage.
        for _ in 1..MAX_ROUNDS {
            if self.verify(progress)?.is_clean() {
                break;
            }
            let again = self.repair_content(progress, now)?;
            if again.is_unchanged() {
                break;
            }
            repaired.changes.extend(again.changes);
            repaired.salvaged = repaired.salvaged.or(again.salvaged);
        }
        Ok(repaired)
    }

    /// Accepts the loss of operations at the end of the log: the remaining log counts as complete.
    pub(crate) fn accept_lost_end(&self, mut repaired: RepairReport) -> Result<RepairReport, StoreError> {
        if let Some(lost) = self.lost_log_end()? {
            repaired.changes.push(RepairChange::LogEndLost(lost));
            self.writer.set_high_water_mark(lost.found);
        }
        Ok(repaired)
    }

    fn repair_content(
        &self,
        progress: &mut dyn FnMut(MaintenanceProgress),
        now: Timestamp,
    ) -> Result<RepairReport, StoreError> {
        let damaged_file = {
            let reading = self.read()?;
            !check_file(reading.queries().connection)?.is_empty()
        };
        if damaged_file {
            return crate::maintenance::salvage::in_place(self, progress, now);
        }
        self.with_exclusive_access(|exclusive| exclusive.transact(|writing| repair(writing, progress, now)))
    }
}

fn repair(
    writing: &WriteTransaction<'_>,
    progress: &mut dyn FnMut(MaintenanceProgress),
    now: Timestamp,
) -> Result<RepairReport, StoreError> {
    // Rows of lost content may be removed, so caches must be checked again.
    writing.record_erasure()?;
    let mut changes = Vec::new();
    logs::return_rows(writing, &read_logs(writing, progress)?, &mut changes)?;
    let logs = read_logs(writing, progress)?;
    restore_default_settings(writing, &logs, now)?;
    let inventory = objects::repair(writing, &logs, now, progress, &mut changes)?;
    logs::join(writing, &logs, now, &mut changes)?;
    states::repair(writing, &read_logs(writing, progress)?, &inventory, now, &mut changes)?;
    let logs = read_logs(writing, progress)?;
    folders::repair(writing, &logs, &inventory, &mut changes)?;
    derived::repair(writing, &logs, progress, &mut changes)?;
    derived::remove_strays(writing, &logs, &mut changes)?;
    derived::repair_projects(writing, now, &mut changes)?;
    let checksums = writing.rebuild_row_checksums()?;
    // Repaired rows change their checksums, which needs no report.
    if checksums > 0 && changes.is_empty() {
        changes.push(RepairChange::RowChecksumsRebuilt { count: checksums });
    }
    Ok(RepairReport { salvaged: None, changes })
}

/// Restores the default settings, which every thread begins with: losing their one row must not cost every thread its
/// states.
fn restore_default_settings(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    now: Timestamp,
) -> Result<(), StoreError> {
    if logs.operations > 0 {
        let bytes = encode(&Settings::default());
        let id = ContentId::of(Kind::Settings, &bytes);
        writing.put_objects(&[NewObject { id, kind: Kind::Settings, bytes: bytes.into() }], now)?;
    }
    Ok(())
}

impl WriteTransaction<'_> {
    /// Rebuilds the derived rows of all threads.
    pub(crate) fn rebuild_derived_rows(&self) -> Result<(), StoreError> {
        let logs = read_logs(self, &mut |_| {})?;
        derived::repair(self, &logs, &mut |_| {}, &mut Vec::new())?;
        self.rebuild_row_checksums().map(drop)
    }
}

impl RepairChange {
    /// A stable name for this kind of change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::IndexRepaired { .. } => "index_repaired",
            Self::ObjectQuarantined { .. } => "object_quarantined",
            Self::ContentLost { .. } => "content_lost",
            Self::ContentFound { .. } => "content_found",
            Self::OperationReturned { .. } => "operation_returned",
            Self::LogJoined { .. } => "log_joined",
            Self::LogEndLost(_) => "log_end_lost",
            Self::EntryReplaced { .. } => "entry_replaced",
            Self::EntriesLost { .. } => "entries_lost",
            Self::ThreadRolledBack { .. } => "thread_rolled_back",
            Self::ThreadEmptied { .. } => "thread_emptied",
            Self::ThreadLost { .. } => "thread_lost",
            Self::ThreadIndexRebuilt { .. } => "thread_index_rebuilt",
            Self::StrayRowsRemoved { .. } => "stray_rows_removed",
            Self::RowChecksumsRebuilt { .. } => "row_checksums_rebuilt",
            Self::ProjectRowAccepted { .. } => "project_row_accepted",
            Self::ProjectQuarantined { .. } => "project_quarantined",
            Self::FolderForgotten { .. } => "folder_forgotten",
            Self::IntentDropped { .. } => "intent_dropped",
            Self::SharedSettingsQuarantined { .. } => "shared_settings_quarantined",
        }
    }
}

impl fmt::Display for RepairChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexRepaired { rows } => {
                write!(formatter, "{rows} rows of the object index were repaired")
            }
            Self::ObjectQuarantined { number } => {
                write!(formatter, "{} is damaged and was moved to quarantine", object(*number))
            }
            Self::LogEndLost(lost) => write!(formatter, "{lost}"),
            Self::ContentLost { kind, id } => write!(formatter, "{kind:?} {} is lost", id.short()),
            Self::ContentFound { id } => {
                write!(formatter, "{} had been lost and was found again", id.short())
            }
            Self::OperationReturned { thread, version } => {
                write!(formatter, "operation {version} of {thread} was moved back to its place")
            }
            Self::LogJoined { thread, from, kept, lost } => write!(
                formatter,
                "the log of {thread} was joined at version {from}: {kept} operations kept, {lost} lost"
            ),
            Self::EntryReplaced { thread, entry, .. } => {
                write!(formatter, "entry {} of {thread} was lost and replaced by a note", entry.short())
            }
            Self::EntriesLost { thread, count, .. } => {
                write!(formatter, "{count} entries of {thread} were lost; their ids are unknown")
            }
            Self::ThreadRolledBack { thread, from, to } => {
                write!(
                    formatter,
                    "{thread} was rolled back to version {to}: version {from} cannot be read completely"
                )
            }
            Self::ThreadEmptied { thread } => {
                write!(formatter, "{thread} is empty now: none of its states could be read")
            }
            Self::ThreadLost { thread } => {
                write!(formatter, "{thread} is lost: none of its operations could be read")
            }
            Self::ThreadIndexRebuilt { thread } => {
                write!(formatter, "the list and tree rows of {thread} were rebuilt")
            }
            Self::StrayRowsRemoved { table, thread } => {
                write!(formatter, "rows of {thread}, which has no log, were removed from table {table}")
            }
            Self::RowChecksumsRebuilt { count } => {
                write!(formatter, "{count} row checksums were rebuilt")
            }
            Self::ProjectRowAccepted { path } => {
                write!(formatter, "the row of the project at {path:?} is damaged and was accepted as it is")
            }
            Self::ProjectQuarantined { project } => {
                write!(formatter, "a project's row ({project}) is damaged and was moved to quarantine")
            }
            Self::FolderForgotten { folder } => write!(
                formatter,
                "the damaged row of a folder ({folder}) was dropped; the next snapshot of the folder replaces it"
            ),
            Self::IntentDropped { intent } => write!(
                formatter,
                "the damaged file move {intent} was dropped; the files stay as they are, and the next snapshot of \
                 their folder records them as changed by the user"
            ),
            Self::SharedSettingsQuarantined { path } => write!(
                formatter,
                "the shared settings in {path} were damaged and moved aside; set prompts, roles and context presets again"
            ),
        }
    }
}
