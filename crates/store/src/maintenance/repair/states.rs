//! Repairs the current state of every thread, so that it can be opened.
//!
//! If only entries are lost, a note replaces each of them; if a node of their list is lost, its entries are left out.
//! If more is lost, the newest readable state becomes current, as after a jump. Either is an ordinary operation by
//! [`Actor::Recovery`], so it appears in the history, and the unreadable versions stay there too.

use std::collections::BTreeMap;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::entry::EntryVersion;
use retake_model::history::{OperationLog as _, link_change, link_move, take_position, thread_position};
use retake_model::id::{IdSource, TurnId};
use retake_model::list::{EntryCell, List, TakeCell};
use retake_model::object::{Additions, load};
use retake_model::operation::{
    Actor, ChainMoves, ChainPosition, Chains, Operation, OperationKind, Provenance, TakePosition, Version,
};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::time::Timestamp;

use super::RepairChange;
use super::cells::readable_cells;
use super::objects::Inventory;
use crate::log::queries::Queries;
use crate::maintenance::completeness::CompletenessChecker;
use crate::maintenance::verify::{Log, Logs, ThreadRef};
use crate::{StoreError, WriteTransaction};

/// The text that replaces a lost entry.
const NOTE: &str = "[this entry was lost: its bytes in the store were damaged]";

/// Makes every thread's current state readable.
pub(super) fn repair(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    inventory: &Inventory,
    now: Timestamp,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    // A thread can be opened without a lost picture, sent request or file.
    let tolerated = inventory.lost.iter().filter(|(kind, _)| is_attached(*kind)).map(|&(_, id)| id).collect();
    let mut completeness = CompletenessChecker::new(writing, &tolerated, &inventory.present);
    for log in logs.threads.values() {
        let Some(head) = writing.head(log.thread)? else {
            continue;
        };
        if completeness.is_complete(Kind::State, head.operation.after)? {
            continue;
        }
        let mut recovery = Recovery {
            writing,
            number: log.thread,
            thread: log.thread_ref(),
            head: head.operation,
            fresh: DerivedIds::from(head.id, now),
        };
        let repaired = recovery.repair_takes(&mut completeness)?;
        if !repaired.is_empty() {
            changes.extend(repaired);
        } else if let Some(version) = newest_complete(log, &mut completeness)? {
            changes.push(recovery.roll_back_to(version)?);
        } else {
            changes.push(recovery.start_over()?);
        }
    }
    Ok(())
}

/// Whether a conversation can be read without content of this kind.
fn is_attached(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Blob
            | Kind::Snapshot
            | Kind::Tree
            | Kind::Parts
            | Kind::Chunks
            | Kind::Excluded
            | Kind::Sealed
            | Kind::SealedFiles
    )
}

/// The newest version whose state is complete.
fn newest_complete(
    log: &Log,
    completeness: &mut CompletenessChecker<'_, '_>,
) -> Result<Option<Version>, StoreError> {
    let states: Vec<(Version, ContentId)> =
        log.intact().map(|(version, intact)| (version, intact.after)).collect();
    for (version, state) in states.into_iter().rev() {
        if completeness.is_complete(Kind::State, state)? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

struct Recovery<'repair, 'transaction> {
    writing: &'repair WriteTransaction<'transaction>,
    number: i64,
    thread: ThreadRef,
    head: Operation,
    fresh: DerivedIds,
}

/// A take with lost entries, and its remaining content.
struct DamagedTake {
    position: u64,
    take: Take,
    cells: Vec<EntryCell>,
    /// Positions in `cells` where a note replaces an entry.
    lost: Vec<usize>,
}

impl Recovery<'_, '_> {
    /// Repairs every take; does nothing if more than entries is lost.
    fn repair_takes(
        &mut self,
        completeness: &mut CompletenessChecker<'_, '_>,
    ) -> Result<Vec<RepairChange>, StoreError> {
        let Ok(mut state) = load::<ThreadState>(&**self.writing, self.head.after) else {
            return Ok(Vec::new());
        };
        if !completeness.is_complete(Kind::Settings, state.settings)? {
            return Ok(Vec::new());
        }
        let Some(damaged) = damaged_takes(self.writing, &state, completeness)? else {
            return Ok(Vec::new());
        };
        let turn = TurnId::generate(&mut self.fresh);
        let mut changes = Vec::new();
        for damaged in damaged {
            changes.extend(self.repair_take(&mut state, damaged, turn)?);
        }
        Ok(changes)
    }

    /// Publishes one operation that replaces lost entries by notes, and leaves out those without a readable node.
    fn repair_take(
        &mut self,
        state: &mut ThreadState,
        damaged: DamagedTake,
        turn: TurnId,
    ) -> Result<Vec<RepairChange>, StoreError> {
        let DamagedTake { position, take, mut cells, lost } = damaged;
        let (thread, id, from) = (self.thread, take.id, take.entries.len());
        let mut additions = Additions::new(&**self.writing);
        let note = additions.add(&EntryVersion::from_text("System", NOTE, self.fresh.now));
        let mut changes = Vec::new();
        let mut edited = None;
        for index in lost {
            let EntryCell { entry, version, .. } = cells[index];
            cells[index].version = note;
            edited = Some(OperationKind::EntryEdited { take: id, entry, from: version, to: note });
            changes.push(RepairChange::EntryReplaced { thread, take: id, entry });
        }
        let entries = List::from_cells(&mut additions, cells);
        let to = entries.len();
        if to < from {
            changes.push(RepairChange::EntriesLost { thread, take: id, count: from - to });
        }
        let kind = match edited {
            Some(edited) if changes.len() == 1 => edited,
            _ => OperationKind::EntriesReplaced { take: id, from, to },
        };
        let content = additions.add(&Take { entries, ..take });
        let cell = TakeCell { take: id, content };
        state.takes = state.takes.splice(&mut additions, position..position + 1, vec![cell])?;
        let after = additions.add(state);
        self.writing.put_objects(&additions.into_new(), self.fresh.now)?;
        let linked = self.link_change(&kind)?;
        self.append(kind, after, turn, linked)?;
        Ok(changes)
    }

    /// Makes the state of an older version current.
    fn roll_back_to(&mut self, version: Version) -> Result<RepairChange, StoreError> {
        let target = self.writing.operation(self.number, version)?;
        let target = target.ok_or_else(|| StoreError::Damaged(format!("operation {version} is missing")))?;
        let from = self.head.version;
        let linked = self.link_back(version)?;
        let kind = OperationKind::Jumped { from: self.head.place.position, to: linked.0.position };
        let turn = TurnId::generate(&mut self.fresh);
        self.append(kind, target.operation.after, turn, linked)?;
        Ok(RepairChange::ThreadRolledBack { thread: self.thread, from, to: version })
    }

    /// The position of a move that brings every chain back to a version.
    fn link_back(&self, version: Version) -> Result<(Provenance, Chains), StoreError> {
        let log = self.writing.log(self.number);
        let head = self.head.version;
        let moved = |then: ChainPosition, now: ChainPosition| ChainPosition {
            position: then.position,
            tip: then.position,
            changed: now.changed,
            since: head + 1,
            undone: 0,
        };
        let mut takes = BTreeMap::new();
        for later in version + 1..=head {
            let Some(chains) = log.step(later)?.chains else { continue };
            let touched = chains.take.into_iter().chain(chains.takes.iter().map(|moved| moved.take));
            for take in touched {
                let then = take_position(&log, version, take)?;
                takes.insert(take, moved(then, take_position(&log, head, take)?));
            }
        }
        let takes = takes.into_iter().map(|(take, at)| TakePosition { take, at }).collect();
        let then = thread_position(&log.step(version)?, version);
        let now = thread_position(&log.step(head)?, head);
        let moves = ChainMoves { thread: moved(then, now), takes, order: None };
        link_move(&log, head, log.active(version)?, moves)
    }

    /// Without a readable state, the thread starts over; its log stays.
    fn start_over(&mut self) -> Result<RepairChange, StoreError> {
        let title = match load::<ThreadState>(&**self.writing, self.head.after) {
            Ok(state) => state.title,
            Err(_) => "Recovered thread".to_owned(),
        };
        let mut additions = Additions::new(&**self.writing);
        let state = ThreadState::new(title, &mut additions, &mut self.fresh)?;
        let after = additions.add(&state);
        self.writing.put_objects(&additions.into_new(), self.fresh.now)?;
        let turn = TurnId::generate(&mut self.fresh);
        let linked = self.link_change(&OperationKind::Reset)?;
        self.append(OperationKind::Reset, after, turn, linked)?;
        Ok(RepairChange::ThreadEmptied { thread: self.thread })
    }

    fn link_change(&self, kind: &OperationKind) -> Result<(Provenance, Chains), StoreError> {
        link_change(&self.writing.log(self.number), self.head.version, kind.take())
    }

    fn append(
        &mut self,
        kind: OperationKind,
        after: ContentId,
        turn: TurnId,
        (place, chains): (Provenance, Chains),
    ) -> Result<(), StoreError> {
        let previous = ContentId::of(Kind::Operation, &encode(&self.head));
        let operation = Operation {
            thread: self.head.thread,
            version: self.head.version + 1,
            previous: Some(previous),
            after,
            kind,
            turn,
            actor: Actor::Recovery,
            time: self.fresh.now,
            place,
            environment: None,
            files: None,
            last_file_operation: self.head.last_file_operation,
            request: None,
            chains: Some(chains),
        };
        self.writing.put_operation(self.number, &operation, &[])?;
        self.head = operation;
        Ok(())
    }
}

/// The takes with lost entries; `None` if too little is left to continue.
fn damaged_takes(
    queries: &Queries<'_>,
    state: &ThreadState,
    completeness: &mut CompletenessChecker<'_, '_>,
) -> Result<Option<Vec<DamagedTake>>, StoreError> {
    let Ok(takes) = state.all_takes(queries) else {
        return Ok(None);
    };
    let mut damaged = Vec::new();
    for (position, take) in (0..).zip(takes) {
        let cells = readable_cells(queries, &take.entries)?;
        let mut lost = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if !completeness.is_complete(Kind::Entry, cell.version)? {
                lost.push(index);
            }
        }
        if lost.is_empty() && cells.len() as u64 == take.entries.len() {
            continue;
        }
        if cells.is_empty() {
            return Ok(None);
        }
        damaged.push(DamagedTake { position, take, cells, lost });
    }
    Ok(Some(damaged))
}

/// Ids derived from the preceding operation, so that repeating a repair gives the same result.
struct DerivedIds {
    now: Timestamp,
    seed: ContentId,
}

impl DerivedIds {
    fn from(seed: ContentId, now: Timestamp) -> Self {
        Self { now, seed }
    }
}

impl IdSource for DerivedIds {
    fn now(&mut self) -> Timestamp {
        self.now
    }

    fn random(&mut self) -> [u8; 10] {
        self.seed = ContentId::of(Kind::Operation, self.seed.bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&self.seed.bytes()[..10]);
        random
    }
}
