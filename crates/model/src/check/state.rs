//! Validation of whole states.
//!
//! A log has thousands of states that differ little. The checker caches accepted takes and compares each
//! list only with its previous version, so the cost depends on the number of changes.

use std::collections::{HashMap, HashSet, VecDeque};

use super::InvalidContentError;
use crate::content::ContentId;
use crate::id::TakeId;
use crate::list::{CheckedList, EntryCell, TakeCell};
use crate::object::{Objects, load};
use crate::state::ThreadState;
use crate::take::Take;

/// The number of takes whose entries are cached: users work on a few takes at a time, and each cached take
/// costs memory for all its entries. Other takes are read from the start.
const REMEMBERED_TAKES: usize = 8;

/// The accepted states of one thread so far.
#[derive(Debug, Default)]
pub struct StateChecker {
    states: HashSet<ContentId>,
    /// Accepted takes by content id.
    takes: HashMap<ContentId, (TakeId, String)>,
    listed: CheckedList<TakeCell>,
    names: HashSet<String>,
    /// The entries of recently checked takes, the latest last.
    entries: VecDeque<(TakeId, CheckedList<EntryCell>)>,
}

impl StateChecker {
    /// Checks a whole state. Its objects must have passed their own checks first.
    ///
    /// After an error the cache is invalid; discard the checker.
    pub fn state<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        id: ContentId,
    ) -> Result<(), InvalidContentError> {
        if self.states.contains(&id) {
            return Ok(());
        }
        let state: ThreadState = load(objects, id)?;
        let delta = self.listed.advance(objects, state.takes)?;
        // Removals come first, because a name may pass from one take to another.
        for cell in &delta.removed {
            if let Some((_, name)) = self.takes.get(&cell.content) {
                self.names.remove(name);
            }
        }
        for cell in &delta.added {
            let name = self.take(objects, cell)?;
            if !self.names.insert(name) {
                return Err(InvalidContentError::TakeName);
            }
        }
        if !self.listed.has(state.active.bytes()) {
            return Err(InvalidContentError::NoActiveTake);
        }
        self.states.insert(id);
        Ok(())
    }

    /// Checks a take and returns its name.
    fn take<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        cell: &TakeCell,
    ) -> Result<String, InvalidContentError> {
        if let Some((take, name)) = self.takes.get(&cell.content) {
            return if *take == cell.take {
                Ok(name.clone())
            } else {
                Err(InvalidContentError::TakeIdentity)
            };
        }
        let take: Take = load(objects, cell.content)?;
        if take.id != cell.take {
            return Err(InvalidContentError::TakeIdentity);
        }
        let mut entries = self.nearest(&take);
        entries.advance(objects, take.entries)?;
        self.entries.push_back((take.id, entries));
        if self.entries.len() > REMEMBERED_TAKES {
            self.entries.pop_front();
        }
        self.takes.insert(cell.content, (take.id, take.name.clone()));
        Ok(take.name)
    }

    /// Returns the cached list closest to the take's entries: its own, else that of its parent take.
    fn nearest(&mut self, take: &Take) -> CheckedList<EntryCell> {
        if let Some(index) = self.entries.iter().position(|(id, _)| *id == take.id) {
            return self.entries.remove(index).map(|(_, list)| list).unwrap_or_default();
        }
        let parent = self.entries.iter().find(|(id, _)| Some(*id) == take.parent);
        parent.map(|(_, list)| list.clone()).unwrap_or_default()
    }
}
