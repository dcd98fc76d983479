//! Reads the history of a thread: its operations, what undo and redo do next, and saved versions.

use std::collections::{HashMap, HashSet};

use retake_model::history::{HistoryCursor, OperationLog, Unit, take_position, thread_position};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_store::{StoreError, ThreadRow};

use crate::read::compare_versions::VersionComparison;
use crate::read::view::{HistoryItem, SavedVersion, UndoStatus};
use crate::write::moves::{UndoAvailability, next_undo, undo_availability, view_of};
use crate::{ReadError, Reader};

/// Reads the history of a thread.
#[derive(Clone, Copy)]
pub struct HistoryReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) thread: ThreadId,
    /// The take whose undo and redo are meant; `None` for the active one.
    pub(crate) take: Option<TakeId>,
}

impl HistoryReader<'_> {
    /// The history as seen from another take; from the active one if `None`.
    #[must_use]
    pub fn in_take(self, take: Option<TakeId>) -> Self {
        Self { take, ..self }
    }

    /// Operations before `before` (or all), newest first, at most `limit`. The flags `current` and `redoable` are those of
    /// the take.
    pub fn list(&self, before: Option<Version>, limit: usize) -> Result<Vec<HistoryItem>, ReadError> {
        let (reader, thread) = (self.reader, self.thread);
        let row = reader.thread(thread)?;
        let queries = reader.queries();
        let head = queries.last_operation(&row)?.operation.version;
        let seen = view_of(&queries, thread, &reader.state(thread)?, self.take)?.take;
        let position = self.in_take(Some(seen)).undo_status()?.position;
        let from = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        let found = queries.operations_back(row.number, from, limit)?;
        let lowest = found.last().map_or(0, |last| last.operation.version);
        let log = queries.log(row.number);
        // Each chain is walked once, however many operations of the page belong to it.
        let mut chains = HashMap::new();
        for stored in &found {
            let take = stored.operation.chains.as_ref().and_then(|chains| chains.take);
            if stored.operation.kind.is_not_undoable() || chains.contains_key(&take) {
                continue;
            }
            let of_thread = thread_position(&log.step(head)?, head);
            let (at, beside) = match take {
                Some(take) => (take_position(&log, head, take)?, of_thread),
                None => (of_thread, take_position(&log, head, seen)?),
            };
            let done = path_down_to(&log, at.position, lowest)?;
            // A later change clears redo.
            let tip = if beside.changed > at.since { at.position } else { at.tip };
            let ahead = path_down_to(&log, tip, lowest.max(at.position))?;
            chains.insert(take, (at.position, done, ahead));
        }
        Ok(found
            .into_iter()
            .map(|stored| {
                let version = stored.operation.version;
                let take = stored.operation.chains.as_ref().and_then(|chains| chains.take);
                // Moves themselves are neither done nor undone.
                let chain = chains.get(&take).filter(|_| !stored.operation.kind.is_not_undoable());
                HistoryItem {
                    version,
                    operation: stored.id,
                    current: version == position,
                    undone: chain.is_some_and(|(_, done, _)| !done.contains(&version)),
                    redoable: chain.is_some_and(|(at, _, ahead)| version != *at && ahead.contains(&version)),
                    kind: stored.operation.kind,
                    turn: stored.operation.turn,
                    actor: stored.operation.actor,
                    time: stored.operation.time,
                    state: stored.operation.after,
                }
            })
            .collect())
    }

    /// The undo status of the take.
    pub fn undo_status(&self) -> Result<UndoStatus, ReadError> {
        let (reader, thread) = (self.reader, self.thread);
        let row = reader.thread(thread)?;
        let queries = reader.queries();
        let version = queries.last_operation(&row)?.operation.version;
        let view = view_of(&queries, thread, &reader.state(thread)?, self.take)?;
        let UndoAvailability { position, can_undo, can_redo } =
            undo_availability(&queries, row.number, version, view)?;
        Ok(UndoStatus { version, position, can_undo, can_redo })
    }

    /// The change that an undo in the take reverts first; `None` if there is nothing to undo.
    pub fn next_undo(&self) -> Result<Option<Version>, ReadError> {
        let queries = self.reader.queries();
        let head = queries.thread_head(self.thread)?.ok_or(ReadError::NoSuchThread(self.thread))?;
        Ok(next_undo(&queries, &head, self.take)?)
    }

    /// The newest change that a redo in the take restores; `None` if there is nothing to redo.
    pub fn redo_target(&self) -> Result<Option<Version>, ReadError> {
        let (reader, thread) = (self.reader, self.thread);
        let row = reader.thread(thread)?;
        let queries = reader.queries();
        let (log, head) = (queries.log(row.number), row.summary.version);
        let view = view_of(&queries, thread, &reader.state(thread)?, self.take)?;
        let mut cursor = HistoryCursor::new(&log, head, view)?;
        let moved = cursor.redo(&log, Unit::Turn)?;
        Ok(cursor.route().last().filter(|_| moved).map(|step| step.version()))
    }

    /// Saved versions, newest first; those before a version, at most that many.
    pub fn saves(&self, before: Option<Version>, limit: usize) -> Result<Vec<SavedVersion>, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        let mut found = Vec::new();
        let mut last = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        while last > 0 && found.len() < limit {
            let page = queries.operations_back(row.number, last, 1000)?;
            last = page.last().map_or(0, |oldest| oldest.operation.version - 1);
            found.extend(page.into_iter().filter_map(|stored| match stored.operation.kind {
                OperationKind::Saved { name } => Some(SavedVersion {
                    version: stored.operation.version,
                    name,
                    time: stored.operation.time,
                    state: stored.operation.after,
                }),
                _ => None,
            }));
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The newest version that was saved under that name.
    pub fn saved(&self, name: &str) -> Result<Option<Version>, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        let mut before = row.summary.version;
        loop {
            let page = queries.operations_back(row.number, before, 1000)?;
            let found = page.iter().find(
                |stored| matches!(&stored.operation.kind, OperationKind::Saved { name: saved } if saved == name),
            );
            if let Some(found) = found {
                return Ok(Some(found.operation.version));
            }
            match page.last() {
                Some(last) if last.operation.version > 1 => before = last.operation.version - 1,
                _ => return Ok(None),
            }
        }
    }

    /// The thread and those that it was a take of, as far as they exist: each with its last version, which for the others
    /// is the one before the promotion.
    pub fn lineage(&self) -> Result<Vec<(Version, ThreadRow)>, ReadError> {
        let queries = self.reader.queries();
        let (mut row, mut found) = (self.reader.thread(self.thread)?, Vec::new());
        let mut last = row.summary.version;
        loop {
            let first = queries.operation(row.number, 1)?.map(|stored| stored.operation.kind);
            found.push((last, row));
            let Some(OperationKind::ThreadPromoted { from, by, .. }) = first else { return Ok(found) };
            let is_new = found.iter().all(|(_, known)| known.summary.id != from);
            let Some(source) = queries.thread(from)?.filter(|_| is_new) else { return Ok(found) };
            last = by.saturating_sub(1).min(source.summary.version);
            row = source;
        }
    }

    /// Compares two versions, with at most that many entries. Files are not included: operations name their snapshots, and
    /// [`SnapshotReader::changes`](crate::SnapshotReader::changes) compares those.
    pub fn compare(&self, versions: [Version; 2], most: usize) -> Result<VersionComparison, ReadError> {
        VersionComparison::of(self.reader, self.thread, versions, most)
    }
}

/// The changes from one back along its parents, down to a version.
fn path_down_to(
    log: &impl OperationLog<Error = StoreError>,
    from: Version,
    lowest: Version,
) -> Result<HashSet<Version>, StoreError> {
    let mut path = HashSet::new();
    let mut version = from;
    while version != 0 && version >= lowest {
        path.insert(version);
        version = log.step(version)?.place.parent;
    }
    Ok(path)
}
