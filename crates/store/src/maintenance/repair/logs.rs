//! Repairs logs: moves rows back to their thread and version, and joins logs with gaps.
//!
//! The bytes of an operation contain its thread, its version and the id of its predecessor, and its id protects them;
//! the columns are copies. So where the bytes are intact, the columns are corrected. Where an operation is lost,
//! later ones no longer follow: they are appended again, with their content, actor and time, and a new version and
//! position.
//!
//! ```text
//!   1 ─ 2 ─ 3 ─ ✗ ─ 5 ─ 6     ►     1 ─ 2 ─ 3 ─ 4' ─ 5'      (4' was 5, 5' was 6)
//! ```

use std::collections::HashMap;

use retake_model::content::{ContentId, Kind, decode, encode};
use retake_model::history::{
    self, FIRST, OperationLog as _, link_change, link_move, link_note, thread_position,
};
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::object::load;
use retake_model::operation::{
    Actor, ChainMoves, ChainPosition, Chains, Operation, OperationKind, Provenance, TakePosition, Version,
};
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::RepairChange;
use crate::log::operations::{StoredOperation, checked};
use crate::maintenance::verify::{Log, Logs, ThreadRef};
use crate::tables::threads::key_of;
use crate::{StoreError, WriteTransaction};

/// Moves intact rows to the thread and version in their bytes.
pub(super) fn return_rows(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    let homes = homes(logs);
    for log in logs.threads.values() {
        for row in &log.operations {
            let known = match &row.intact {
                Some(intact) => Some((intact.thread, intact.version, intact.id)),
                None => identify_by_successor(writing, log, row.sequence)?,
            };
            let Some((thread, version, id)) = known else {
                continue;
            };
            let Some(&home) = homes.get(&thread) else {
                continue;
            };
            let in_place = row.intact.is_some() && home == log.thread && version as i64 == row.version;
            // An occupied slot is not overwritten; the row is handled as a broken one.
            let free = in_place || writing.slot_is_free(home, version, row.sequence)?;
            if in_place || !free {
                continue;
            }
            writing
                .connection
                .prepare_cached(
                    "UPDATE operation SET thread = ?2, version = ?3, id = ?4 WHERE sequence = ?1",
                )?
                .execute(params![row.sequence, home, version as i64, id.bytes()])?;
            changes.push(RepairChange::OperationReturned {
                thread: ThreadRef { number: home, id: Some(thread) },
                version,
            });
        }
    }
    Ok(())
}

/// The row number of each thread, by majority of its operations.
fn homes(logs: &Logs) -> HashMap<ThreadId, i64> {
    let mut votes: HashMap<(ThreadId, i64), u64> = HashMap::new();
    for log in logs.threads.values() {
        for (_, intact) in log.intact() {
            *votes.entry((intact.thread, log.thread)).or_default() += 1;
        }
    }
    let mut homes: HashMap<ThreadId, (u64, i64)> = HashMap::new();
    for ((thread, number), count) in votes {
        let home = homes.entry(thread).or_insert((0, number));
        // The lower number wins a tie.
        if (count, std::cmp::Reverse(number)) > (home.0, std::cmp::Reverse(home.1)) {
            *home = (count, number);
        }
    }
    homes.into_iter().map(|(thread, (_, number))| (thread, number)).collect()
}

/// Identifies an operation with a damaged id, if its successor refers to the hash of its bytes.
fn identify_by_successor(
    writing: &WriteTransaction<'_>,
    log: &Log,
    sequence: i64,
) -> Result<Option<(ThreadId, Version, ContentId)>, StoreError> {
    let body: Option<Vec<u8>> = writing
        .connection
        .prepare_cached("SELECT body FROM operation WHERE sequence = ?1")?
        .query_row([sequence], |row| row.get(0))?;
    let Some(body) = body else {
        return Ok(None);
    };
    let id = ContentId::of(Kind::Operation, &body);
    let vouched = log.intact().any(|(_, intact)| intact.previous == Some(id));
    let operation = vouched.then(|| decode::<Operation>(&body).ok()).flatten();
    Ok(operation.map(|operation| (operation.thread, operation.version, id)))
}

/// Joins every log that has a gap.
pub(super) fn join(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    now: Timestamp,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    for log in logs.threads.values() {
        if let Some(sequence) = log.purged.filter(|_| !log.operations.is_empty()) {
            // A purge deletes the log in the same transaction, so this purge record is stray.
            writing.quarantine_operation(sequence, now)?;
            changes.push(RepairChange::StrayRowsRemoved { table: "operation", thread: log.thread_ref() });
        }
        let intact_prefix = log.intact_prefix();
        if log.operations.is_empty() || intact_prefix == log.operations.len() {
            continue;
        }
        let change = LogJoin::new(writing, log, intact_prefix, now)?.run()?;
        changes.push(change);
    }
    Ok(())
}

struct LogJoin<'join, 'transaction> {
    writing: &'join WriteTransaction<'transaction>,
    log: &'join Log,
    now: Timestamp,
    from: Version,
    /// Operations after the gap.
    tail: Vec<StoredOperation>,
    lost: u64,
    /// New versions of operations after the gap, by old version.
    moved: HashMap<Version, Version>,
    head: Option<StoredOperation>,
    /// Sequence numbers are never reused, not even of quarantined rows.
    next_sequence: i64,
}

impl<'join, 'transaction> LogJoin<'join, 'transaction> {
    fn new(
        writing: &'join WriteTransaction<'transaction>,
        log: &'join Log,
        intact_prefix: usize,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let (kept, broken) = log.operations.split_at(intact_prefix);
        let from = kept.len() as Version + 1;
        let mut tail = Vec::new();
        for row in broken.iter().filter(|row| row.intact.is_some()) {
            tail.extend(writing.operation_at(row.sequence)?);
        }
        // An operation of another thread that could not be moved back does not belong here either.
        tail.retain(|stored| Some(stored.operation.thread) == log.id);
        let highest = tail.iter().map(|stored| stored.operation.version).max();
        let rows = highest.map_or(broken.len() as u64, |highest| (highest + 1).saturating_sub(from));
        Ok(Self {
            writing,
            log,
            now,
            from,
            lost: rows.max(broken.len() as u64) - tail.len() as u64,
            moved: HashMap::new(),
            head: match kept.last() {
                Some(row) => writing.operation_at(row.sequence)?,
                None => None,
            },
            next_sequence: writing.last_sequence()? + 1,
            tail,
        })
    }

    fn run(mut self) -> Result<RepairChange, StoreError> {
        let thread = self.log.thread_ref();
        for row in &self.log.operations[self.log.intact_prefix()..] {
            self.writing.quarantine_operation(row.sequence, self.now)?;
        }
        let tail = std::mem::take(&mut self.tail);
        let Some(last) = tail.last().cloned() else {
            return Ok(if self.head.is_none() {
                RepairChange::ThreadLost { thread }
            } else {
                self.joined(0)
            });
        };
        if self.head.is_none() {
            self.begin(&tail[0].operation)?;
        }
        let kept = tail.len() as u64;
        for stored in tail {
            self.reappend(stored.operation)?;
        }
        self.end(&last.operation)?;
        Ok(self.joined(kept))
    }

    fn joined(&self, kept: u64) -> RepairChange {
        RepairChange::LogJoined { thread: self.log.thread_ref(), from: self.from, kept, lost: self.lost }
    }

    /// A log without its beginning starts with the first remaining state.
    fn begin(&mut self, oldest: &Operation) -> Result<(), StoreError> {
        let listed = match self.writing.thread_by_number(self.log.thread) {
            Ok(Some(row)) => Some(row.summary.project),
            _ => self.writing.home_of(self.log.thread)?,
        };
        // Without a project, the thread can still be found by its id and its words.
        let project = listed.unwrap_or(ProjectId::from_bytes([0; 16]));
        self.append(Operation {
            kind: OperationKind::ThreadCreated { project },
            actor: Actor::Recovery,
            place: FIRST,
            chains: None,
            environment: None,
            files: None,
            request: None,
            ..oldest.clone()
        })
    }

    /// Appends an operation again. Skips a move to a lost version, because it changed nothing, unless it
    /// changed files or visibility: then the operation stays, without moving the conversation.
    fn reappend(&mut self, operation: Operation) -> Result<(), StoreError> {
        let old = operation.version;
        let version = self.next_version();
        let log = self.writing.log(self.log.thread);
        let head = version - 1;
        let mut after = operation.after;
        let ((place, chains), kind) = if operation.kind.moves_chains() {
            let kind = self.renumbered(operation.kind.clone(), &self.head_place());
            match self.relink_move(&operation)? {
                Some(linked) => (linked, kind),
                None if operation.files.is_none() => return Ok(()),
                None => {
                    after = self.head.as_ref().map_or(after, |head| head.operation.after);
                    let thread = thread_position(&log.step(head)?, head);
                    let stays = ChainMoves { thread, takes: Vec::new(), order: None };
                    (link_move(&log, head, self.view(&operation)?, stays)?, kind)
                }
            }
        } else if operation.kind.is_not_undoable() {
            after = self.head.as_ref().map_or(after, |head| head.operation.after);
            (link_note(&log, head)?, operation.kind)
        } else {
            let take = match operation.files {
                Some(files) if operation.kind.changes_files_only() => Some(files.take),
                _ => operation.kind.take(),
            };
            (link_change(&log, head, take)?, operation.kind)
        };
        self.append(Operation { place, chains: Some(chains), kind, after, ..operation })?;
        self.moved.insert(old, version);
        Ok(())
    }

    /// The take that a move led to.
    fn view(&self, operation: &Operation) -> Result<TakeId, StoreError> {
        match operation.chains.as_ref().and_then(|chains| chains.take) {
            Some(take) => Ok(take),
            None => Ok(load::<ThreadState>(&**self.writing, operation.after)?.active),
        }
    }

    /// The position of a move whose chains reach the same changes as before; `None` if one of them is lost.
    fn relink_move(&self, operation: &Operation) -> Result<Option<(Provenance, Chains)>, StoreError> {
        let log = self.writing.log(self.log.thread);
        let head = self.next_version() - 1;
        let now = |at: ChainPosition, before: ChainPosition| -> Option<ChainPosition> {
            let position = if at.position == 0 { 0 } else { self.new_version_of(at.position)? };
            let tip = if at.tip == 0 { 0 } else { self.new_version_of(at.tip).unwrap_or(position) };
            let undone = match at.undone {
                _ if position == tip => 0,
                undone if undone == operation.version => head + 1,
                undone => self.new_version_of(undone).unwrap_or(0),
            };
            Some(ChainPosition { position, tip, changed: before.changed, since: head + 1, undone })
        };
        let before = thread_position(&log.step(head)?, head);
        let wanted = thread_position(&history::LogStep::of(operation), operation.version);
        let Some(thread) = now(wanted, before) else { return Ok(None) };
        let thread =
            if (thread.position, thread.tip) == (before.position, before.tip) { before } else { thread };
        let mut takes = Vec::new();
        for moved in operation.chains.iter().flat_map(|chains| &chains.takes) {
            let before = history::take_position(&log, head, moved.take)?;
            let Some(at) = now(moved.at, before) else { return Ok(None) };
            takes.push(TakePosition { take: moved.take, at });
        }
        let order = operation.chains.as_ref().and_then(|chains| chains.order.clone());
        let moves = ChainMoves { thread, takes, order };
        let (place, chains) = link_move(&log, head, self.view(operation)?, moves)?;
        let again = Operation { place, chains: Some(chains.clone()), ..operation.clone() };
        Ok(history::Link::of(&again).follows(&log, head)?.then_some((place, chains)))
    }

    /// If the last operation could not be appended again, the thread still continues from its state.
    fn end(&mut self, last: &Operation) -> Result<(), StoreError> {
        let Some(head) = &self.head else {
            return Ok(());
        };
        if head.operation.after == last.after {
            return Ok(());
        }
        let Ok(state) = load::<ThreadState>(&**self.writing, last.after) else {
            return Ok(());
        };
        let (place, chains) =
            link_change(&self.writing.log(self.log.thread), self.next_version() - 1, Some(state.active))?;
        let count = state.active_take(&**self.writing).map_or(0, |take| take.entries.len());
        self.append(Operation {
            kind: OperationKind::EntriesReplaced { take: state.active, from: count, to: count },
            actor: Actor::Recovery,
            time: self.now,
            place,
            chains: Some(chains),
            // The files of the last operation were recorded in any case.
            files: None,
            request: None,
            ..last.clone()
        })
    }

    fn append(&mut self, operation: Operation) -> Result<(), StoreError> {
        let version = self.next_version();
        let last_file_operation = self.head.as_ref().and_then(|head| head.operation.last_file_operation);
        let operation = Operation {
            version,
            previous: self.head.as_ref().map(|head| head.id),
            last_file_operation: operation.files.map(|_| version).or(last_file_operation),
            ..operation
        };
        let stored = self.writing.append_at(self.next_sequence, self.log.thread, operation)?;
        self.next_sequence += 1;
        self.head = Some(stored);
        Ok(())
    }

    fn next_version(&self) -> Version {
        self.head.as_ref().map_or(0, |head| head.operation.version) + 1
    }

    fn head_place(&self) -> Provenance {
        self.head.as_ref().map_or(FIRST, |head| head.operation.place)
    }

    /// The new version of a change.
    fn new_version_of(&self, version: Version) -> Option<Version> {
        if version < self.from {
            return Some(version).filter(|&version| version > 0);
        }
        let moved = self.moved.get(&version).copied()?;
        // Only a change: a change stays a change.
        let step = self.writing.log(self.log.thread).step(moved).ok()?;
        (step.place.position == moved).then_some(moved)
    }

    fn renumbered(&self, kind: OperationKind, head: &Provenance) -> OperationKind {
        let at = |version: Version| self.new_version_of(version).unwrap_or(head.position);
        match kind {
            OperationKind::Undone { from, to } => OperationKind::Undone { from: at(from), to: at(to) },
            OperationKind::Redone { from, to } => OperationKind::Redone { from: at(from), to: at(to) },
            OperationKind::Jumped { from, to } => OperationKind::Jumped { from: at(from), to: at(to) },
            other => other,
        }
    }
}

impl WriteTransaction<'_> {
    /// Appends an operation with a given sequence number.
    pub(super) fn append_at(
        &self,
        sequence: i64,
        thread: i64,
        operation: Operation,
    ) -> Result<StoredOperation, StoreError> {
        let body = encode(&operation);
        let id = ContentId::of(Kind::Operation, &body);
        self.connection
            .prepare_cached(
                "INSERT INTO operation (sequence, thread, version, id, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![sequence, thread, operation.version as i64, id.bytes(), body])?;
        Ok(StoredOperation { id, sequence, operation })
    }

    /// An operation by its sequence number, wherever its row says it belongs.
    fn operation_at(&self, sequence: i64) -> Result<Option<StoredOperation>, StoreError> {
        let row: Option<(Vec<u8>, Option<Vec<u8>>)> = self
            .connection
            .prepare_cached("SELECT id, body FROM operation WHERE sequence = ?1")?
            .query_row([sequence], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((id, Some(body))) = row else { return Ok(None) };
        checked(sequence, &id, &body).map(Some)
    }

    fn slot_is_free(&self, thread: i64, version: Version, but: i64) -> Result<bool, StoreError> {
        let taken = self
            .connection
            .prepare_cached("SELECT 1 FROM operation WHERE thread = ?1 AND version = ?2 AND sequence <> ?3")?
            .query_row(params![thread, version as i64, but], |_| Ok(()))
            .optional()?;
        Ok(taken.is_none())
    }

    /// Moves an operation aside. The objects of its bundle get rows of their own, since later states need them.
    fn quarantine_operation(&self, sequence: i64, now: Timestamp) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO quarantine (source, place, thread, version, id, body, time)
                 SELECT 'operation', sequence, thread, version, id, body, ?2 FROM operation
                 WHERE sequence = ?1",
            )?
            .execute(params![sequence, now.millis()])?;
        let objects = self.dissolve_bundle(sequence)?;
        self.connection.prepare_cached("DELETE FROM operation WHERE sequence = ?1")?.execute([sequence])?;
        self.put_objects(&objects, now).map(drop)
    }

    /// The project of a thread, if its row is intact or names an existing project.
    pub(super) fn home_of(&self, number: i64) -> Result<Option<ProjectId>, StoreError> {
        if let Ok(Some(row)) = self.thread_by_number(number) {
            return Ok(Some(row.home));
        }
        let column: Option<Vec<u8>> = self
            .connection
            .prepare_cached(
                "SELECT thread.project FROM thread JOIN project ON project.key = thread.project
                 WHERE thread.number = ?1",
            )?
            .query_row([number], |row| row.get(0))
            .optional()?;
        Ok(column.and_then(|bytes| key_of(&bytes)).map(ProjectId::from_key))
    }
}
