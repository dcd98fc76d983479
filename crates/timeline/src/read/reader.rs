//! Reads the timeline in one transaction. Readers change nothing and never wait for a writer.

use std::collections::HashMap;
use std::ops::Range;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::history::{HistoryCursor, OperationLog, Unit, take_position, thread_position};
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::{Objects, load};
use retake_model::operation::{OperationKind, Version};
use retake_model::settings::Settings;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{Queries, ReadTransaction, Store, StoreError, StoredOperation, ThreadFilter, ThreadRow};

use crate::read::view::{EntryView, HistoryItem, SavedVersion, UndoStatus};
use crate::write::moves::{UndoAvailability, next_undo, undo_availability, view_of};
use crate::{ReadError, Timeline};

/// A consistent view of the timeline.
pub struct Reader<'timeline> {
    reading: ReadTransaction<'timeline>,
}

impl Timeline {
    /// Begins a read transaction.
    pub fn read(&self) -> Result<Reader<'_>, StoreError> {
        Ok(Reader { reading: self.store.read()? })
    }
}

impl Reader<'_> {
    /// Queries of the underlying store.
    pub fn queries(&self) -> Queries<'_> {
        self.reading.queries()
    }

    /// The underlying store.
    pub(crate) fn store(&self) -> &Store {
        self.reading.store()
    }

    /// A thread by id.
    pub fn thread(&self, thread: ThreadId) -> Result<ThreadRow, ReadError> {
        self.queries().thread(thread)?.ok_or(ReadError::NoSuchThread(thread))
    }

    /// Threads that match a filter: pinned ones first, then the most recently changed.
    pub fn threads(&self, filter: &ThreadFilter) -> Result<Vec<ThreadRow>, ReadError> {
        Ok(self.queries().threads(filter)?)
    }

    /// The last operation of a thread.
    pub fn head(&self, thread: ThreadId) -> Result<StoredOperation, ReadError> {
        Ok(self.queries().last_operation(&self.thread(thread)?)?)
    }

    /// The newest state of a thread.
    pub fn state(&self, thread: ThreadId) -> Result<ThreadState, ReadError> {
        Ok(load(&self.queries(), self.head(thread)?.operation.after)?)
    }

    /// A thread and those that it was a take of, as far as they exist: each with its last version, which for the others
    /// is the one before the promotion.
    pub fn lineage(&self, thread: ThreadId) -> Result<Vec<(Version, ThreadRow)>, ReadError> {
        let queries = self.queries();
        let (mut row, mut found) = (self.thread(thread)?, Vec::new());
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

    /// The state of a thread after an operation.
    pub fn state_at(&self, thread: ThreadId, version: Version) -> Result<ThreadState, ReadError> {
        let row = self.thread(thread)?;
        match self.queries().operation(row.number, version)? {
            Some(found) if version > 0 => Ok(load(&self.queries(), found.operation.after)?),
            // A log has no gaps: a missing version is damage.
            None if (1..=row.summary.version).contains(&version) => {
                Err(StoreError::Damaged(format!("operation {version} is missing")).into())
            }
            _ => Err(ReadError::NoSuchVersion { asked: version, current: row.summary.version }),
        }
    }

    /// The settings of a state itself; [`Reader::effective_settings`] includes shared ones.
    pub fn settings(&self, state: &ThreadState) -> Result<Settings, ReadError> {
        Ok(load(&self.queries(), state.settings)?)
    }

    /// The entries of a take in that range of positions, counted from 0.
    pub fn page(
        &self,
        thread: ThreadId,
        take: &Take,
        range: Range<u64>,
    ) -> Result<Vec<EntryView>, ReadError> {
        Ok(self.page_within(thread, take, range, usize::MAX)?.0)
    }

    /// A page of entries limited by bytes, and the position after the last. The first entry is included at any size.
    pub fn page_within(
        &self,
        thread: ThreadId,
        take: &Take,
        range: Range<u64>,
        most_bytes: usize,
    ) -> Result<(Vec<EntryView>, u64), ReadError> {
        let queries = self.queries();
        let shown = queries.cached_presentations(self.thread(thread)?.number)?;
        let cells = take.entries.page(&queries, range.clone())?;
        let (mut views, mut bytes) = (Vec::with_capacity(cells.len()), 0);
        for (position, cell) in (range.start..).zip(cells) {
            let entry: EntryVersion = load(&queries, cell.version)?;
            bytes += entry.size();
            if bytes > most_bytes && !views.is_empty() {
                return Ok((views, position));
            }
            views.push(EntryView {
                number: position + 1,
                id: cell.entry,
                version: cell.version,
                shown: shown.get(&cell.entry).copied().unwrap_or_default(),
                entry,
            });
        }
        let end = range.start + views.len() as u64;
        Ok((views, end))
    }

    /// The bytes of a blob.
    pub fn blob(&self, blob: ContentId) -> Result<Vec<u8>, ReadError> {
        Ok(self.queries().bytes(Kind::Blob, blob)?.to_vec())
    }

    /// An entry of a take and its position; `None` if the take does not contain it.
    pub fn entry(&self, take: &Take, entry: EntryId) -> Result<Option<(u64, EntryVersion)>, ReadError> {
        let queries = self.queries();
        match take.entries.find(&queries, entry.bytes())? {
            Some((position, cell)) => Ok(Some((position, load(&queries, cell.version)?))),
            None => Ok(None),
        }
    }

    /// The undo status of the active take.
    pub fn undo_status(&self, thread: ThreadId) -> Result<UndoStatus, ReadError> {
        self.undo_status_in(thread, None)
    }

    /// The undo status of a take; of the active one if `None`.
    pub fn undo_status_in(&self, thread: ThreadId, take: Option<TakeId>) -> Result<UndoStatus, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let version = queries.last_operation(&row)?.operation.version;
        let view = view_of(&queries, thread, &self.state(thread)?, take)?;
        let UndoAvailability { position, can_undo, can_redo } =
            undo_availability(&queries, row.number, version, view)?;
        Ok(UndoStatus { version, position, can_undo, can_redo })
    }

    /// The change that an undo in that take, or in the active one, reverts first; `None` if there is nothing to undo.
    pub fn next_undo(&self, thread: ThreadId, take: Option<TakeId>) -> Result<Option<Version>, ReadError> {
        let queries = self.queries();
        let head = queries.thread_head(thread)?.ok_or(ReadError::NoSuchThread(thread))?;
        Ok(next_undo(&queries, &head, take)?)
    }

    /// The newest change that a redo in that take, or in the active one, restores; `None` if there is nothing to redo.
    pub fn redo_target(&self, thread: ThreadId, take: Option<TakeId>) -> Result<Option<Version>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let (log, head) = (queries.log(row.number), row.summary.version);
        let view = view_of(&queries, thread, &self.state(thread)?, take)?;
        let mut cursor = HistoryCursor::new(&log, head, view)?;
        let moved = cursor.redo(&log, Unit::Turn)?;
        Ok(cursor.route().last().filter(|_| moved).map(|step| step.version()))
    }

    /// Operations of a thread before `before` (or all), newest first, at most `limit`.
    pub fn history(
        &self,
        thread: ThreadId,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<HistoryItem>, ReadError> {
        self.history_in(thread, None, before, limit)
    }

    /// The history with the flags `current` and `redoable` for that take.
    pub fn history_in(
        &self,
        thread: ThreadId,
        take: Option<TakeId>,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<HistoryItem>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let head = queries.last_operation(&row)?.operation.version;
        let seen = view_of(&queries, thread, &self.state(thread)?, take)?.take;
        let position = self.undo_status_in(thread, Some(seen))?.position;
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

    /// Saved versions, newest first; those before a version, at most that many.
    pub fn saves(
        &self,
        thread: ThreadId,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<SavedVersion>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
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
    pub fn saved(&self, thread: ThreadId, name: &str) -> Result<Option<Version>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
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
}

/// The changes from one back along its parents, down to a version.
fn path_down_to(
    log: &impl OperationLog<Error = StoreError>,
    from: Version,
    lowest: Version,
) -> Result<std::collections::HashSet<Version>, StoreError> {
    let mut path = std::collections::HashSet::new();
    let mut version = from;
    while version != 0 && version >= lowest {
        path.insert(version);
        version = log.step(version)?.place.parent;
    }
    Ok(path)
}
