//! Repair: what can be worked out again is worked out again, and what is lost is named.
//!
//! ```text
//!   objects      damaged ones are put aside; the index is made anew
//!   logs         rows go back to where their bytes say they belong; a log with a hole is joined
//!   heads        a thread whose present state has holes goes on from one that has none
//!   folders      rows that cannot be relied on go; the next look at the folder makes up for them
//!   derived      thread, take and facet rows as the logs say
//! ```
//!
//! Nothing is thrown away. Rows that are no use as they are move to the table `quarantine`; content that is
//! gone for good is entered in `lost`, so that a later check tells an old loss from a new one. All of it is
//! one transaction.
//!
//! Where SQLite itself cannot find its way through the file, rows are first [`salvaged`](crate::salvage)
//! into a new one.
//!
//! The index for full-text search follows the log by itself, yet should be made anew after a repair that
//! changed a log.

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

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repaired {
    /// What was read out of a damaged file into a new one, if that was needed.
    pub salvaged: Option<Salvaged>,
    /// Every change, in the order in which it was made.
    pub changes: Vec<Change>,
}

/// One thing that a repair did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepairChange"))]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Rows of the index of objects were added or removed.
    IndexMended {
        /// How many.
        rows: u64,
    },
    /// An object whose bytes are damaged was put aside.
    ObjectSetAside {
        /// The row it had.
        number: i64,
    },
    /// Content that something needs is gone.
    ContentLost {
        /// What it is.
        #[serde(serialize_with = "kind_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// Content that had been lost is here again.
    ContentFound {
        /// Its name.
        id: ContentId,
    },
    /// An operation stood under a wrong thread, version or name, and is where it belongs again.
    OperationReturned {
        /// Whose it is.
        thread: WhichThread,
        /// Its version.
        version: Version,
    },
    /// A log had a hole. What came behind it was added again, with new numbers; the rows as they were are put
    /// aside.
    LogJoined {
        /// Whose log.
        thread: WhichThread,
        /// The first version that is not what it was.
        from: Version,
        /// How many operations were added again.
        kept: u64,
        /// How many are lost.
        lost: u64,
    },
    /// The end of the log is gone, with operations that had been acknowledged.
    LogEndLost(LostEnd),
    /// An entry of the present state was lost; a note stands in its place.
    EntryReplaced {
        /// In which thread.
        thread: WhichThread,
        /// In which take.
        take: TakeId,
        /// Which entry.
        entry: EntryId,
    },
    /// Entries of the present state were lost, and nothing tells which they were.
    EntriesLost {
        /// In which thread.
        thread: WhichThread,
        /// In which take.
        take: TakeId,
        /// How many.
        count: u64,
    },
    /// The present state could not be read; the newest one that can is current now.
    ThreadWentBack {
        /// Which thread.
        thread: WhichThread,
        /// The version that cannot be read.
        from: Version,
        /// The version whose state is current.
        to: Version,
    },
    /// No state of a thread could be read; it is empty now, and its log is kept.
    ThreadEmptied {
        /// Which thread.
        thread: WhichThread,
    },
    /// No operation of a thread could be read.
    ThreadLost {
        /// Which thread.
        thread: WhichThread,
    },
    /// What lists, trees and filters show of a thread was made anew.
    ThreadDerived {
        /// Which thread.
        thread: WhichThread,
    },
    /// Rows that belonged to no log were removed.
    StrayRowsRemoved {
        /// From which table.
        table: &'static str,
        /// The thread that they named.
        thread: WhichThread,
    },
    /// What lists should show was counted anew.
    TalliesMended {
        /// How many tallies were wrong.
        count: u64,
    },
    /// A project's row was altered by damage and is taken as it stands now.
    ProjectTrusted {
        /// Where its folder is said to be.
        path: String,
    },
    /// A project's row could not be made sense of and was put aside.
    ProjectSetAside {
        /// Its key, as far as it can be read.
        project: String,
    },
    /// A folder's row could not be relied on and was dropped; the next look at the folder records it anew.
    FolderForgotten {
        /// Its key, as far as it can be read.
        folder: String,
    },
    /// A move of files that had begun could not be relied on and was dropped. Its files stay as they are; the
    /// next look at the folder finds them and records them as changed by hand.
    IntentDropped {
        /// The number that it had.
        intent: i64,
    },
    /// A damaged record of settings that threads share was moved aside. What each thread has set itself holds in it.
    SharedSettingsSetAside {
        /// The file that it was.
        path: String,
    },
}

impl Repaired {
    /// Whether nothing had to be done.
    pub fn is_unchanged(&self) -> bool {
        self.salvaged.is_none() && self.changes.is_empty()
    }

    /// What is gone for good.
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

/// How often a repair looks at the store again; each round mends what only the one before made readable.
const MOST_ROUNDS: usize = 3;

impl Store {
    /// Mends what can be mended. The result says what was done and what is lost.
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
        // One thing mended may bring another to light, and whoever repairs wants to be done.
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

    /// What is gone from the end of the log cannot be had again: from here on what is left is the whole log.
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
    // Rows of content that is gone may go: who remembers what the store holds must ask again.
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
    // Where rows were mended, their tallies follow; that is nothing to speak of.
    if tallies > 0 && changes.is_empty() {
        changes.push(Change::TalliesMended { count: tallies });
    }
    Ok(Repaired { salvaged: None, changes })
}

/// Every thread begins with the default settings, and what they are is known: losing the one row that holds them
/// must not cost every thread its states.
fn bring_back_defaults(writing: &Writing<'_>, logs: &Logs, now: Timestamp) -> Result<(), StoreError> {
    if logs.operations > 0 {
        let bytes = encode(&Settings::default());
        let id = ContentId::of(Kind::Settings, &bytes);
        writing.put_objects(&[NewObject { id, kind: Kind::Settings, bytes: bytes.into() }], now)?;
    }
    Ok(())
}

impl Writing<'_> {
    /// Works the derived rows of all threads out again.
    pub(crate) fn derive_all_again(&self) -> Result<(), StoreError> {
        let gathered = gather(self, &mut |_| {})?;
        derived::mend(self, &gathered, &mut |_| {}, &mut Vec::new())?;
        self.tally_again().map(drop)
    }
}

impl Change {
    /// A name for this kind of change that does not change.
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
                write!(formatter, "{rows} rows of the index of objects were mended")
            }
            Self::ObjectSetAside { number } => {
                write!(formatter, "object {number} is damaged and was put aside")
            }
            Self::LogEndLost(lost) => write!(formatter, "{lost}"),
            Self::ContentLost { kind, id } => write!(formatter, "{kind:?} {} is lost", id.short()),
            Self::ContentFound { id } => {
                write!(formatter, "{} had been lost and is here again", id.short())
            }
            Self::OperationReturned { thread, version } => {
                write!(formatter, "operation {version} of {thread} is back in its place")
            }
            Self::LogJoined { thread, from, kept, lost } => write!(
                formatter,
                "the log of {thread} was joined at version {from}: {kept} operations kept, {lost} lost"
            ),
            Self::EntryReplaced { thread, entry, .. } => {
                write!(formatter, "entry {} of {thread} was lost; a note stands in its place", entry.short())
            }
            Self::EntriesLost { thread, count, .. } => {
                write!(formatter, "{count} entries of {thread} were lost without a trace in its list")
            }
            Self::ThreadWentBack { thread, from, to } => {
                write!(formatter, "{thread} went back to version {to}: version {from} cannot be read in full")
            }
            Self::ThreadEmptied { thread } => {
                write!(formatter, "{thread} is empty now: none of its states could be read")
            }
            Self::ThreadLost { thread } => {
                write!(formatter, "{thread} is lost: none of its operations could be read")
            }
            Self::ThreadDerived { thread } => {
                write!(formatter, "what lists show of {thread} was made anew")
            }
            Self::StrayRowsRemoved { table, thread } => {
                write!(formatter, "rows of {thread}, which has no log, were removed from table {table}")
            }
            Self::TalliesMended { count } => {
                write!(formatter, "{count} tallies of what lists should show were made anew")
            }
            Self::ProjectTrusted { path } => write!(
                formatter,
                "the row of the project at {path:?} was altered by damage and is taken as it stands"
            ),
            Self::ProjectSetAside { project } => {
                write!(formatter, "a project's row ({project}) is damaged and was put aside")
            }
            Self::FolderForgotten { folder } => write!(
                formatter,
                "the row of a folder ({folder}) was dropped; the next look at the folder records it anew"
            ),
            Self::IntentDropped { intent } => write!(
                formatter,
                "move of files {intent}, which had begun, was dropped; the files stay as they are, and the next \
                 look at their folder records them as changed by hand"
            ),
            Self::SharedSettingsSetAside { path } => write!(
                formatter,
                "the shared settings in {path} were damaged, and were moved aside; set prompts, roles and context presets anew"
            ),
        }
    }
}
