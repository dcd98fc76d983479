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
//! If SQLite cannot read the file, rows are first [`salvaged`](crate::salvage) into a new one.
//!
//! The full-text index follows the log, but should be rebuilt after a repair that changed a log.

mod cells;
mod derived;
mod folders;
mod heads;
mod logs;
mod objects;

use std::fmt;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::NewObject;
use retake_model::operation::Version;
use retake_model::settings::Settings;
use retake_model::time::Timestamp;
use serde::Serialize;

use crate::mark::LostEnd;
use crate::salvage::Salvaged;
use crate::verify::{Logs, MaintenanceProgress, WhichThread, check_file, gather, kind_name};
use crate::{Store, StoreError, Writing};

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repaired {
    /// The result of a salvage, if the file was damaged.
    pub salvaged: Option<Salvaged>,
    /// Every change, in order.
    pub changes: Vec<Change>,
}

/// A change made by a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepairChange"))]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Rows of the object index were added or removed.
    IndexMended {
        rows: u64,
    },
    /// A damaged object was moved to quarantine.
    ObjectSetAside {
        number: i64,
    },
    /// Referenced content is lost.
    ContentLost {
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        id: ContentId,
    },
    /// Content that was recorded as lost is stored again.
    ContentFound {
        id: ContentId,
    },
    /// An operation was stored under a wrong thread, version or id, and was corrected.
    OperationReturned {
        thread: WhichThread,
        version: Version,
    },
    /// A log had a gap. Later operations were appended again with new versions; the old rows are in quarantine.
    LogJoined {
        thread: WhichThread,
        /// The first version that differs.
        from: Version,
        /// Operations that were appended again.
        kept: u64,
        /// Operations that are lost.
        lost: u64,
    },
    /// Acknowledged operations at the end of the log are lost.
    LogEndLost(LostEnd),
    /// An entry of the current state was lost and replaced by a note.
    EntryReplaced {
        thread: WhichThread,
        take: TakeId,
        entry: EntryId,
    },
    /// Entries of the current state were lost, and their ids are unknown.
    EntriesLost {
        thread: WhichThread,
        take: TakeId,
        count: u64,
    },
    /// The current state could not be read; the newest readable one is current now.
    ThreadWentBack {
        thread: WhichThread,
        /// The version that cannot be read.
        from: Version,
        /// The version that is current now.
        to: Version,
    },
    /// No state of a thread could be read. The thread is empty now; its log stays.
    ThreadEmptied {
        thread: WhichThread,
    },
    /// No operation of a thread could be read.
    ThreadLost {
        thread: WhichThread,
    },
    /// The derived rows of a thread were rebuilt.
    ThreadDerived {
        thread: WhichThread,
    },
    /// Rows without a log were removed.
    StrayRowsRemoved {
        table: &'static str,
        /// The thread in the rows.
        thread: WhichThread,
    },
    /// Row checksums were rebuilt.
    TalliesMended {
        /// The number of wrong checksums.
        count: u64,
    },
    /// A damaged project row was accepted as it is.
    ProjectTrusted {
        /// Its recorded path.
        path: String,
    },
    /// An unreadable project row was moved to quarantine.
    ProjectSetAside {
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
    IntentDropped {
        intent: i64,
    },
    /// A damaged record of shared settings was moved aside. Each thread keeps its own settings.
    SharedSettingsSetAside {
        path: String,
    },
}

impl Repaired {
    /// Whether no repair was necessary.
    pub fn is_unchanged(&self) -> bool {
        self.salvaged.is_none() && self.changes.is_empty()
    }

    /// The changes that record a loss.
    pub fn losses(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| {
            matches!(
                change,
                Change::ContentLost { .. }
                    | Change::ThreadLost { .. }
                    | Change::LogJoined { lost: 1.., .. }
                    | Change::ProjectSetAside { .. }
                    | Change::SharedSettingsSetAside { .. }
            )
        })
    }
}

/// The most passes of a repair; a pass may make further damage readable.
const MOST_ROUNDS: usize = 3;

impl Store {
    /// Repairs the store. The result lists all changes and losses.
    pub fn repair(
        &self,
        progress: &mut dyn FnMut(MaintenanceProgress),
        now: Timestamp,
    ) -> Result<Repaired, StoreError> {
        let repaired = self.repair_content(progress, now)?;
        let mut repaired = self.accept_lost_end(repaired)?;
        let aside = self.set_aside_shared_settings()?.into_iter();
        repaired
            .changes
            .extend(aside.map(|path| Change::SharedSettingsSetAside { path: path.display().to_string() }));
        // Repairing one thing may reveal another.
        for _ in 1..MOST_ROUNDS {
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
    pub(crate) fn accept_lost_end(&self, mut repaired: Repaired) -> Result<Repaired, StoreError> {
        if let Some(lost) = self.lost_end()? {
            repaired.changes.push(Change::LogEndLost(lost));
            self.writer.leave_mark(lost.found);
        }
        Ok(repaired)
    }

    fn repair_content(
        &self,
        progress: &mut dyn FnMut(MaintenanceProgress),
        now: Timestamp,
    ) -> Result<Repaired, StoreError> {
        let damaged_file = {
            let reading = self.read()?;
            !check_file(reading.queries().connection)?.is_empty()
        };
        if damaged_file {
            return crate::salvage::in_place(self, progress, now);
        }
        self.alone(|alone| alone.transact(|writing| mend(writing, progress, now)))
    }
}

fn mend(
    writing: &Writing<'_>,
    progress: &mut dyn FnMut(MaintenanceProgress),
    now: Timestamp,
) -> Result<Repaired, StoreError> {
    // Rows of lost content may be removed, so caches must be checked again.
    writing.record_erasure()?;
    let mut changes = Vec::new();
    logs::return_rows(writing, &gather(writing, progress)?, &mut changes)?;
    let gathered = gather(writing, progress)?;
    bring_back_defaults(writing, &gathered, now)?;
    let inventory = objects::mend(writing, &gathered, now, progress, &mut changes)?;
    logs::join(writing, &gathered, now, &mut changes)?;
    heads::mend(writing, &gather(writing, progress)?, &inventory, now, &mut changes)?;
    let gathered = gather(writing, progress)?;
    folders::mend(writing, &gathered, &inventory, &mut changes)?;
    derived::mend(writing, &gathered, progress, &mut changes)?;
    derived::remove_strays(writing, &gathered, &mut changes)?;
    derived::mend_projects(writing, now, &mut changes)?;
    let tallies = writing.tally_again()?;
    // Repaired rows change their checksums, which needs no report.
    if tallies > 0 && changes.is_empty() {
        changes.push(Change::TalliesMended { count: tallies });
    }
    Ok(Repaired { salvaged: None, changes })
}

/// Restores the default settings, which every thread begins with: losing their one row must not cost every thread its
/// states.
fn bring_back_defaults(writing: &Writing<'_>, logs: &Logs, now: Timestamp) -> Result<(), StoreError> {
    if logs.operations > 0 {
        let bytes = encode(&Settings::default());
        let id = ContentId::of(Kind::Settings, &bytes);
        writing.put_objects(&[NewObject { id, kind: Kind::Settings, bytes: bytes.into() }], now)?;
    }
    Ok(())
}

impl Writing<'_> {
    /// Rebuilds the derived rows of all threads.
    pub(crate) fn derive_all_again(&self) -> Result<(), StoreError> {
        let gathered = gather(self, &mut |_| {})?;
        derived::mend(self, &gathered, &mut |_| {}, &mut Vec::new())?;
        self.tally_again().map(drop)
    }
}

impl Change {
    /// A stable name for this kind of change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::IndexMended { .. } => "index_mended",
            Self::ObjectSetAside { .. } => "object_set_aside",
            Self::ContentLost { .. } => "content_lost",
            Self::ContentFound { .. } => "content_found",
            Self::OperationReturned { .. } => "operation_returned",
            Self::LogJoined { .. } => "log_joined",
            Self::LogEndLost(_) => "log_end_lost",
            Self::EntryReplaced { .. } => "entry_replaced",
            Self::EntriesLost { .. } => "entries_lost",
            Self::ThreadWentBack { .. } => "thread_went_back",
            Self::ThreadEmptied { .. } => "thread_emptied",
            Self::ThreadLost { .. } => "thread_lost",
            Self::ThreadDerived { .. } => "thread_derived",
            Self::StrayRowsRemoved { .. } => "stray_rows_removed",
            Self::TalliesMended { .. } => "tallies_mended",
            Self::ProjectTrusted { .. } => "project_trusted",
            Self::ProjectSetAside { .. } => "project_set_aside",
            Self::FolderForgotten { .. } => "folder_forgotten",
            Self::IntentDropped { .. } => "intent_dropped",
            Self::SharedSettingsSetAside { .. } => "shared_settings_set_aside",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexMended { rows } => {
                write!(formatter, "{rows} rows of the object index were repaired")
            }
            Self::ObjectSetAside { number } => {
                write!(formatter, "object {number} is damaged and was moved to quarantine")
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
            Self::ThreadWentBack { thread, from, to } => {
                write!(formatter, "{thread} was rolled back to version {to}: version {from} cannot be read completely")
            }
            Self::ThreadEmptied { thread } => {
                write!(formatter, "{thread} is empty now: none of its states could be read")
            }
            Self::ThreadLost { thread } => {
                write!(formatter, "{thread} is lost: none of its operations could be read")
            }
            Self::ThreadDerived { thread } => {
                write!(formatter, "the list and tree rows of {thread} were rebuilt")
            }
            Self::StrayRowsRemoved { table, thread } => {
                write!(formatter, "rows of {thread}, which has no log, were removed from table {table}")
            }
            Self::TalliesMended { count } => {
                write!(formatter, "{count} row checksums were rebuilt")
            }
            Self::ProjectTrusted { path } => write!(
                formatter,
                "the row of the project at {path:?} is damaged and was accepted as it is"
            ),
            Self::ProjectSetAside { project } => {
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
            Self::SharedSettingsSetAside { path } => write!(
                formatter,
                "the shared settings in {path} were damaged and moved aside; set prompts, roles and context presets again"
            ),
        }
    }
}
