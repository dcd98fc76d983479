//! The shape of a conversation: what the user said, and where each take leaves the others.
//!
//! ```text
//!   main     1 user ── 2 ── 3 user ── 4          messages: 1, 3 of main; 3 of other, below 1
//!                      └── 3 user                takes: main below its 3, other below its own 3
//!   other
//! ```
//!
//! Entries that a take shares with its parent are read once, in the parent.

use std::collections::HashMap;

use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::load;
use retake_model::take::Take;
use retake_timeline::{LookError, Looking, TreeThread};
use serde::Serialize;

use crate::failure::Failure;

/// Where the messages of a thread stand.
#[derive(Debug, Default, Serialize)]
pub(super) struct Shape {
    /// The user's messages, those of a parent before those of its children.
    pub(super) messages: Vec<Message>,
    /// Where each take ends.
    pub(super) takes: Vec<End>,
}

/// Something the user said.
#[derive(Debug, Serialize)]
pub(super) struct Message {
    /// The first take that has it.
    pub(super) take: TakeId,
    pub(super) entry: EntryId,
    /// Its place in the take, counted from 1.
    pub(super) number: u64,
    pub(super) preview: String,
    /// The message before it, as its place in the list of messages, counted from 0.
    pub(super) below: Option<usize>,
}

/// The end of a take.
#[derive(Debug, Serialize)]
pub(super) struct End {
    pub(super) take: TakeId,
    /// The last message of the take, as its place in the list of messages, counted from 0.
    pub(super) below: Option<usize>,
}

/// A take whose messages are in the list.
struct Placed {
    take: Take,
    /// How many entries it shares with its parent.
    shared: u64,
    /// The message that its own part hangs below.
    base: Option<usize>,
    /// Its own messages: position in the take, place in the list.
    own: Vec<(u64, usize)>,
}

impl Shape {
    /// The shape of a thread.
    pub(super) fn of(looking: &Looking<'_>, thread: &TreeThread) -> Result<Self, Failure> {
        let state = looking.state(thread.summary.id)?;
        let mut shape = Self::default();
        let mut placed: HashMap<TakeId, Placed> = HashMap::new();
        // Takes come oldest first, and a parent is older than its children.
        for summary in &thread.all_takes {
            let queries = looking.queries();
            let Some(take) = state.take(&queries, summary.id).map_err(LookError::from)? else { continue };
            let base = base(looking, &placed, &take)?;
            let known = take.parent.is_some_and(|parent| placed.contains_key(&parent));
            let shared = if known { summary.shared } else { 0 };
            let place = Placed { shared, base, own: Vec::new(), take };
            let place = shape.read(looking, place)?;
            let last = place.own.last().map(|(_, index)| *index).or(place.base);
            shape.takes.push(End { take: summary.id, below: last });
            placed.insert(summary.id, place);
        }
        Ok(shape)
    }

    /// Reads what a take does not share.
    fn read(&mut self, looking: &Looking<'_>, mut place: Placed) -> Result<Placed, Failure> {
        let queries = looking.queries();
        let mut below = place.base;
        for (position, cell) in (place.shared..).zip(place.take.entries.iter(&queries, place.shared)) {
            let cell = cell.map_err(LookError::from)?;
            let entry: EntryVersion = load(&queries, cell.version).map_err(LookError::from)?;
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

/// The message that a take's own part hangs below: the last one that it shares.
fn base(
    looking: &Looking<'_>,
    placed: &HashMap<TakeId, Placed>,
    take: &Take,
) -> Result<Option<usize>, Failure> {
    let Some(entry) = take.fork_point else { return Ok(None) };
    let mut parent = take.parent.and_then(|parent| placed.get(&parent));
    while let Some(place) = parent {
        let found = place.take.entries.find(&looking.queries(), entry.bytes()).map_err(LookError::from)?;
        let Some((position, _)) = found else { return Ok(place.base) };
        if position >= place.shared {
            let own = place.own.iter().rev().find(|(own, _)| *own <= position);
            return Ok(own.map(|(_, index)| *index).or(place.base));
        }
        // The parent shares the fork point with a take further up. Each step goes to an older take.
        parent = place.take.parent.and_then(|parent| placed.get(&parent));
    }
    Ok(None)
}
