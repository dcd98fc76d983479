//! Whole states: how the pieces fit together.
//!
//! A log has thousands of states that differ little. What was accepted once is remembered, and of a list only
//! what differs from the version before is looked at, so the work follows what is new.

use std::collections::{HashMap, HashSet, VecDeque};

use super::BadContent;
use crate::content::ContentId;
use crate::id::TakeId;
use crate::list::{CheckedList, EntryCell, TakeCell};
use crate::object::{Objects, load};
use crate::state::ThreadState;
use crate::take::Take;

/// How many takes' entries are remembered: people work on a few at a time, and each costs memory for all its
/// entries. A take that is not among them is walked from its beginning.
const REMEMBERED: usize = 8;

/// What has been accepted of one thread so far.
#[derive(Debug, Default)]
pub struct Accepted {
    states: HashSet<ContentId>,
    /// Takes that were accepted, by content.
    takes: HashMap<ContentId, (TakeId, String)>,
    /// The takes of the last state, and their names.
    listed: CheckedList<TakeCell>,
    names: HashSet<String>,
    /// The entries of takes that were looked at lately, the latest last.
    entries: VecDeque<(TakeId, CheckedList<EntryCell>)>,
}

impl Accepted {
    /// Checks a state as a whole. Its pieces must have been checked by themselves.
    ///
    /// After an error, what is remembered is of no use any more.
    pub fn state<O: Objects + ?Sized>(&mut self, objects: &O, id: ContentId) -> Result<(), BadContent> {
        if self.states.contains(&id) {
            return Ok(());
        }
        let state: ThreadState = load(objects, id)?;
        let turnover = self.listed.advance(objects, state.takes)?;
        // All that goes goes first: a name may pass from one take to another.
        for cell in &turnover.gone {
            if let Some((_, name)) = self.takes.get(&cell.content) {
                self.names.remove(name);
            }
        }
        for cell in &turnover.come {
            let name = self.take(objects, cell)?;
            if !self.names.insert(name) {
                return Err(BadContent::TakeName);
            }
        }
        if !self.listed.has(state.active.bytes()) {
            return Err(BadContent::NoActiveTake);
        }
        self.states.insert(id);
        Ok(())
    }

    /// Checks a take, and gives its name.
    fn take<O: Objects + ?Sized>(&mut self, objects: &O, cell: &TakeCell) -> Result<String, BadContent> {
        if let Some((take, name)) = self.takes.get(&cell.content) {
            return if *take == cell.take { Ok(name.clone()) } else { Err(BadContent::TakeIdentity) };
        }
        let take: Take = load(objects, cell.content)?;
        if take.id != cell.take {
            return Err(BadContent::TakeIdentity);
        }
        let mut entries = self.nearest(&take);
        entries.advance(objects, take.entries)?;
        self.entries.push_back((take.id, entries));
        if self.entries.len() > REMEMBERED {
            self.entries.pop_front();
        }
        self.takes.insert(cell.content, (take.id, take.name.clone()));
        Ok(take.name)
    }

    /// The remembered list that a take's entries differ from least: its own, else that of the take it came from.
    fn nearest(&mut self, take: &Take) -> CheckedList<EntryCell> {
        if let Some(index) = self.entries.iter().position(|(id, _)| *id == take.id) {
            return self.entries.remove(index).map(|(_, list)| list).unwrap_or_default();
        }
        let parent = self.entries.iter().find(|(id, _)| Some(*id) == take.parent);
        parent.map(|(_, list)| list.clone()).unwrap_or_default()
    }
}
