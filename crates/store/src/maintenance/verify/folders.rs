//! Checks the rows of folders and of pending moves of files. No log contains their expected values, so each
//! row is compared with its own digest, with its thread's log, and with the content that it needs.
//!
//! ```text
//!   folder   digest ── key ── snapshot ──► stored
//!   intent   digest ── folder, thread ── operation ──► next in its thread's log; state, snapshots ──► stored
//! ```

use retake_model::content::{ContentId, Kind};
use retake_model::id::FolderId;
use retake_model::intent::{FolderRecord, Intent};
use retake_model::operation::{Operation, Version};
use retake_model::reference::Reference;
use rusqlite::types::ValueRef;

use super::log::{Log, Logs};
use super::{Problem, Referrer, ThreadRef, read_or_report};
use crate::StoreError;
use crate::log::queries::{Queries, decode_checked, hexadecimal};
use crate::tables::folders::StoredIntent;

/// The rows of both tables.
pub(crate) struct FolderRows {
    pub(crate) folders: Vec<FolderRecord>,
    /// Keys of damaged rows.
    pub(crate) damaged_folders: Vec<Vec<u8>>,
    pub(crate) intents: Vec<StoredIntent>,
    /// Numbers of damaged rows.
    pub(crate) damaged_intents: Vec<i64>,
}

impl FolderRows {
    /// Reads all rows. An unreadable table is reported as a problem and yields no rows.
    pub(crate) fn read(queries: &Queries<'_>, problems: &mut Vec<Problem>) -> Result<Self, StoreError> {
        let (folders, damaged_folders) = read_or_report(problems, "folder", || read_folders(queries))?;
        let (intents, damaged_intents) = read_or_report(problems, "intent", || read_intents(queries))?;
        Ok(Self { folders, damaged_folders, intents, damaged_intents })
    }

    /// Problems of the rows themselves.
    pub(super) fn check(&self, logs: &Logs) -> Vec<Problem> {
        let folders =
            self.damaged_folders.iter().map(|key| Problem::FolderDamaged { folder: hexadecimal(key) });
        let intents = self.damaged_intents.iter().map(|&intent| Problem::IntentDamaged { intent });
        let misplaced = self.intents.iter().filter(|stored| !is_next(&stored.intent.operation, logs));
        let misplaced = misplaced.map(|stored| Problem::IntentMisplaced {
            intent: stored.number,
            thread: thread_ref(&stored.intent.operation, logs),
        });
        folders.chain(intents).chain(misplaced).collect()
    }

    /// The content that the rows need, each with the row that needs it.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (Reference, Referrer)> {
        let folders = self.folders.iter().filter_map(|folder| {
            let snapshot = folder.snapshot?;
            Some(((Kind::Snapshot, snapshot), Referrer::Folder { folder: folder.id }))
        });
        let intents = self.intents.iter().flat_map(|stored| {
            let by = Referrer::Intent { intent: stored.number };
            intent_needs(&stored.intent).map(move |reference| (reference, by))
        });
        folders.chain(intents)
    }
}

/// Whether the pending operation still extends the end of its thread's log.
pub(crate) fn is_next(operation: &Operation, logs: &Logs) -> bool {
    let (version, previous) =
        log_of(operation, logs).and_then(end).map_or((0, None), |(v, id)| (v, Some(id)));
    operation.version == version + 1 && operation.previous == previous
}

fn thread_ref(operation: &Operation, logs: &Logs) -> ThreadRef {
    let number = log_of(operation, logs).map_or(0, |log| log.thread);
    ThreadRef { number, id: Some(operation.thread) }
}

fn log_of<'logs>(operation: &Operation, logs: &'logs Logs) -> Option<&'logs Log> {
    logs.threads.values().find(|log| log.id == Some(operation.thread))
}

fn end(log: &Log) -> Option<(Version, ContentId)> {
    log.intact().last().map(|(version, intact)| (version, intact.id))
}

fn intent_needs(intent: &Intent) -> impl Iterator<Item = Reference> {
    let operation = &intent.operation;
    let state = [(Kind::State, operation.after)];
    let around = operation.environment.map(|id| (Kind::Environment, id));
    let files = [intent.files.before, intent.files.after].map(|id| (Kind::Snapshot, id));
    state.into_iter().chain(around).chain(files)
}

type CheckedRows<IntactOperation, Key> = (Vec<IntactOperation>, Vec<Key>);

fn read_folders(queries: &Queries<'_>) -> rusqlite::Result<CheckedRows<FolderRecord, Vec<u8>>> {
    let (mut intact, mut damaged) = (Vec::new(), Vec::new());
    let mut statement = queries.connection.prepare("SELECT key, record, digest FROM folder ORDER BY key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = blob(row.get_ref(0)?);
        let record = decode_checked::<FolderRecord>(blob(row.get_ref(1)?), number(row.get_ref(2)?), "folder");
        match record {
            Ok(record) if record.id.key() == key => intact.push(record),
            _ => damaged.push(key.to_vec()),
        }
    }
    Ok((intact, damaged))
}

fn read_intents(queries: &Queries<'_>) -> rusqlite::Result<CheckedRows<StoredIntent, i64>> {
    let (mut intact, mut damaged) = (Vec::new(), Vec::new());
    let mut statement = queries
        .connection
        .prepare("SELECT number, folder, thread, body, digest FROM intent ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let place = row.get(0)?;
        let intent = decode_checked::<Intent>(blob(row.get_ref(3)?), number(row.get_ref(4)?), "intent");
        let (folder, thread) = (blob(row.get_ref(1)?), blob(row.get_ref(2)?));
        match intent {
            Ok(intent) if is_consistent(&intent, folder, thread) => {
                intact.push(StoredIntent { number: place, intent });
            }
            _ => damaged.push(place),
        }
    }
    Ok((intact, damaged))
}

/// Whether the columns match the intent, and the intent matches its operation.
fn is_consistent(intent: &Intent, folder: &[u8], thread: &[u8]) -> bool {
    let Intent { operation, files, .. } = intent;
    FolderId::key(&intent.folder) == folder
        && operation.thread.key() == thread
        && operation.files == Some(*files)
        && operation.last_file_operation == Some(operation.version)
}

// A column with an unexpected type is damaged; the default value makes the digest check fail.
fn blob(value: ValueRef<'_>) -> &[u8] {
    value.as_blob().unwrap_or_default()
}

fn number(value: ValueRef<'_>) -> i64 {
    value.as_i64().unwrap_or_default()
}
