//! Heads: every thread can be opened and worked on again.
//!
//! Where only entries are lost, a note takes the place of each, and all the rest stays as it is. Where more is
//! lost, the newest state that can be read in full becomes current, as a jump would make it. Either is an
//! ordinary operation by [`Actor::Recovery`]: it is in the history, and the versions that cannot be read stay
//! there too.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::entry::EntryVersion;
use retake_model::history::{jump, place_of_change, place_of_move};
use retake_model::id::{EntryId, Fresh, TakeId, TurnId};
use retake_model::list::{EntryCell, TakeCell};
use retake_model::object::{Additions, Unavailable, load};
use retake_model::operation::{Actor, Operation, OperationKind, Place, Version};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::time::Timestamp;

use super::Change;
use crate::queries::Queries;
use crate::verify::{Log, Logs, WhichThread};
use crate::whole::Wholeness;
use crate::{StoreError, Writing};

/// What stands where an entry was lost.
const NOTE: &str = "[this entry was lost: its bytes in the store were damaged]";

/// Makes every thread's present state one that can be read.
pub(super) fn mend(
    writing: &Writing<'_>,
    logs: &Logs,
    lost_blobs: &HashSet<ContentId>,
    now: Timestamp,
    changes: &mut Vec<Change>,
) -> Result<(), StoreError> {
    // A picture or a sent request that is lost does not keep a thread from being opened.
    let mut wholeness = Wholeness::new(writing, lost_blobs);
    for log in logs.threads.values() {
        let Some(head) = writing.head(log.thread)? else {
            continue;
        };
        if wholeness.is_whole(Kind::State, head.operation.after)? {
            continue;
        }
        let mut recovery = Recovery {
            writing,
            number: log.thread,
            thread: log.which(),
            head: head.operation,
            fresh: Derived::from(head.id, now),
        };
        let replaced = recovery.replace_entries(&mut wholeness)?;
        if !replaced.is_empty() {
            changes.extend(replaced);
        } else if let Some(version) = newest_whole(log, &mut wholeness)? {
            changes.push(recovery.go_back(version)?);
        } else {
            changes.push(recovery.start_over()?);
        }
    }
    Ok(())
}

/// The newest version whose state can be read in full.
fn newest_whole(log: &Log, wholeness: &mut Wholeness<'_, '_>) -> Result<Option<Version>, StoreError> {
    let states: Vec<(Version, ContentId)> =
        log.sound().map(|(version, sound)| (version, sound.after)).collect();
    for (version, state) in states.into_iter().rev() {
        if wholeness.is_whole(Kind::State, state)? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

struct Recovery<'repair, 'transaction> {
    writing: &'repair Writing<'transaction>,
    number: i64,
    thread: WhichThread,
    head: Operation,
    fresh: Derived,
}

/// An entry that is lost, in one take.
struct LostEntry {
    take: Take,
    take_position: u64,
    position: u64,
    cell: EntryCell,
}

impl Recovery<'_, '_> {
    /// Puts a note in the place of every lost entry; does nothing if more than entries is lost.
    fn replace_entries(&mut self, wholeness: &mut Wholeness<'_, '_>) -> Result<Vec<Change>, StoreError> {
        let Ok(mut state) = load::<ThreadState>(&**self.writing, self.head.after) else {
            return Ok(Vec::new());
        };
        let Ok(lost) = lost_entries(self.writing, &state, wholeness)? else {
            return Ok(Vec::new());
        };
        if lost.is_empty() || !wholeness.is_whole(Kind::Settings, state.settings)? {
            return Ok(Vec::new());
        }
        let turn = TurnId::fresh(&mut self.fresh);
        let note = EntryVersion::from_text("System", NOTE, self.fresh.now);
        let mut replaced = Vec::new();
        let mut current: Option<Take> = None;
        for LostEntry { take, take_position, position, cell } in lost {
            // Several lost entries of one take build on one another.
            let take = current.filter(|current| current.id == take.id).unwrap_or(take);
            let mut additions = Additions::new(&**self.writing);
            let version = additions.add(&note);
            let entries = take.entries.splice(
                &mut additions,
                position..position + 1,
                vec![EntryCell { version, ..cell }],
            )?;
            let take = Take { entries, ..take };
            let content = additions.add(&take);
            state.takes = state.takes.splice(
                &mut additions,
                take_position..take_position + 1,
                vec![TakeCell { take: take.id, content }],
            )?;
            let after = additions.add(&state);
            self.writing.put_objects(&additions.into_new(), self.fresh.now)?;
            let place = self.place_of_change()?;
            self.append(
                OperationKind::EntryEdited {
                    take: take.id,
                    entry: cell.entry,
                    from: cell.version,
                    to: version,
                },
                after,
                turn,
                place,
            )?;
            replaced.push(self.replaced(take.id, cell.entry));
            current = Some(take);
        }
        Ok(replaced)
    }

    fn replaced(&self, take: TakeId, entry: EntryId) -> Change {
        Change::EntryReplaced { thread: self.thread, take, entry }
    }

    /// Makes the state of an older version current.
    fn go_back(&mut self, version: Version) -> Result<Change, StoreError> {
        let log = self.writing.log(self.number);
        let to = jump(&log, &self.head.place, version)?;
        let target = self.writing.operation(self.number, version)?;
        let target = target.ok_or_else(|| StoreError::Damaged(format!("operation {version} is missing")))?;
        let from = self.head.version;
        let kind = OperationKind::Jumped { from: self.head.place.position, to: to.position };
        let place = place_of_move(&self.head.place, to);
        let turn = TurnId::fresh(&mut self.fresh);
        self.append(kind, target.operation.after, turn, place)?;
        Ok(Change::ThreadWentBack { thread: self.thread, from, to: version })
    }

    /// With no state left to go back to, the thread starts over; its log stays.
    fn start_over(&mut self) -> Result<Change, StoreError> {
        let title = match load::<ThreadState>(&**self.writing, self.head.after) {
            Ok(state) => state.title,
            Err(_) => "Recovered thread".to_owned(),
        };
        let mut additions = Additions::new(&**self.writing);
        let state = ThreadState::new(title, &mut additions, &mut self.fresh)?;
        let after = additions.add(&state);
        self.writing.put_objects(&additions.into_new(), self.fresh.now)?;
        let turn = TurnId::fresh(&mut self.fresh);
        let place = self.place_of_change()?;
        self.append(OperationKind::Reset, after, turn, place)?;
        Ok(Change::ThreadEmptied { thread: self.thread })
    }

    fn place_of_change(&self) -> Result<Place, StoreError> {
        let log = self.writing.log(self.number);
        place_of_change(&log, &self.head.place, self.head.version + 1)
    }

    fn append(
        &mut self,
        kind: OperationKind,
        after: ContentId,
        turn: TurnId,
        place: Place,
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
            surroundings: None,
            files: None,
        };
        self.writing.put_operation(self.number, &operation)?;
        self.head = operation;
        Ok(())
    }
}

/// The entries of a state that are lost; an error if what holds them is lost too.
fn lost_entries(
    queries: &Queries<'_>,
    state: &ThreadState,
    wholeness: &mut Wholeness<'_, '_>,
) -> Result<Result<Vec<LostEntry>, Unavailable>, StoreError> {
    let takes = match state.all_takes(queries) {
        Ok(takes) => takes,
        Err(unavailable) => return Ok(Err(unavailable)),
    };
    let mut lost = Vec::new();
    for (take_position, take) in (0..).zip(takes) {
        for (position, cell) in (0..).zip(take.entries.iter(queries, 0)) {
            let cell = match cell {
                Ok(cell) => cell,
                Err(unavailable) => return Ok(Err(unavailable)),
            };
            if !wholeness.is_whole(Kind::Entry, cell.version)? {
                lost.push(LostEntry { take: take.clone(), take_position, position, cell });
            }
        }
    }
    Ok(Ok(lost))
}

/// Identities worked out from the operation that they follow: a repair that is done twice is the same repair.
struct Derived {
    now: Timestamp,
    seed: ContentId,
}

impl Derived {
    fn from(seed: ContentId, now: Timestamp) -> Self {
        Self { now, seed }
    }
}

impl Fresh for Derived {
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
