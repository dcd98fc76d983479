//! The tree of user messages: where takes diverge.
//!
//! ```text
//!   main     1 user ── 2 ── 3 user ── 4          messages: 1, 3 of main; 3 of other, below 1
//!                      └── 3 user                takes: main below its 3, other below its own 3
//!   other
//! ```
//!
//! Entries that a take shares with its parent are read only once.

use std::collections::HashMap;

use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::load;
use retake_model::take::Take;
use retake_timeline::{ReadError, Reader, TreeThread};
use serde::Serialize;

use crate::failure::Failure;

#[derive(Debug, Default, Serialize)]
pub(super) struct MessageTree {
    /// User messages; those of a parent precede those of its children.
    pub(super) messages: Vec<Message>,
    /// The last message of each take.
    pub(super) takes: Vec<TakeEnd>,
}

#[derive(Debug, Serialize)]
pub(super) struct Message {
    /// The first take that contains it.
    pub(super) take: TakeId,
    pub(super) entry: EntryId,
    /// Its number in the take, from 1.
    pub(super) number: u64,
    pub(super) preview: String,
    /// Index of the previous message in `messages`.
    pub(super) below: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct TakeEnd {
    pub(super) take: TakeId,
    /// Index of the take's last message in `messages`.
    pub(super) below: Option<usize>,
}

/// A take whose messages were collected.
struct PlacedTake {
    take: Take,
    /// Number of entries shared with its parent.
    shared: u64,
    /// Index of the message that its own part follows.
    base: Option<usize>,
    /// Its own messages: position in the take, index in the list.
    own: Vec<(u64, usize)>,
}

impl MessageTree {
    /// Collects the messages of a thread.
    pub(super) fn of(reader: &Reader<'_>, thread: &TreeThread) -> Result<Self, Failure> {
        let state = reader.state(thread.summary.id)?;
        let mut shape = Self::default();
        let mut placed: HashMap<TakeId, PlacedTake> = HashMap::new();
        // Takes are sorted by age, so parents come first.
        for summary in &thread.all_takes {
            let queries = reader.queries();
            let Some(take) = state.take(&queries, summary.id).map_err(ReadError::from)? else { continue };
            let base = base(reader, &placed, &take)?;
            let known = take.parent.is_some_and(|parent| placed.contains_key(&parent));
            let shared = if known { summary.shared } else { 0 };
            let place = PlacedTake { shared, base, own: Vec::new(), take };
            let place = shape.read(reader, place)?;
            let last = place.own.last().map(|(_, index)| *index).or(place.base);
            shape.takes.push(TakeEnd { take: summary.id, below: last });
            placed.insert(summary.id, place);
        }
        Ok(shape)
    }

    /// Reads the entries that a take does not share.
    fn read(&mut self, reader: &Reader<'_>, mut place: PlacedTake) -> Result<PlacedTake, Failure> {
        let queries = reader.queries();
        let mut below = place.base;
        for (position, cell) in (place.shared..).zip(place.take.entries.iter(&queries, place.shared)) {
            let cell = cell.map_err(ReadError::from)?;
            let entry: EntryVersion = load(&queries, cell.version).map_err(ReadError::from)?;
            if RoleKind::of(&entry.role) != RoleKind::User {
                continue;
            }
            let index = self.messages.len();
            self.messages.push(Message {
                take: place.take.id,
                entry: cell.entry,
                number: position + 1,
                preview: entry.preview(),
                below,
            });
            place.own.push((position, index));
            below = Some(index);
        }
        Ok(place)
    }
}

/// The last message that a take shares with its ancestors.
fn base(
    reader: &Reader<'_>,
    placed: &HashMap<TakeId, PlacedTake>,
    take: &Take,
) -> Result<Option<usize>, Failure> {
    let Some(entry) = take.fork_point else { return Ok(None) };
    let mut parent = take.parent.and_then(|parent| placed.get(&parent));
    while let Some(place) = parent {
        let found = place.take.entries.find(&reader.queries(), entry.bytes()).map_err(ReadError::from)?;
        let Some((position, _)) = found else { return Ok(place.base) };
        if position >= place.shared {
            let own = place.own.iter().rev().find(|(own, _)| *own <= position);
            return Ok(own.map(|(_, index)| *index).or(place.base));
        }
        // The fork point is shared with an older ancestor; each step goes to an older take, so this ends.
        parent = place.take.parent.and_then(|parent| placed.get(&parent));
    }
    Ok(None)
}
