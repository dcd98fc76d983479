//! How entries are shown. It is remembered beside the state, and not part of history: an undo does not unfold anything.

use retake_model::command::Refusal;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::Objects;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::Shown;

use crate::change::Head;
use crate::{ChangeError, Timeline};

/// What is to change in how entries are shown; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Showing {
    /// Whether only a preview is shown.
    pub collapsed: Option<bool>,
    /// Whether the text is shown as it was written.
    pub source: Option<bool>,
}

/// Which entries are to be shown in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichEntries {
    /// All of a take; of the active one if none is named.
    AllOf(Option<TakeId>),
    /// These, in whichever take of the thread they are.
    These(Vec<EntryId>),
}

impl Showing {
    fn on(self, shown: Shown) -> Shown {
        Shown {
            collapsed: self.collapsed.unwrap_or(shown.collapsed),
            source: self.source.unwrap_or(shown.source),
        }
    }
}

impl Timeline {
    /// Shows entries in another way from now on; says how many. If one of them is not there, none is.
    pub fn show_entries(
        &self,
        thread: ThreadId,
        which: WhichEntries,
        showing: Showing,
    ) -> Result<u64, ChangeError> {
        let count = self.store().write(move |writing| -> Result<u64, ChangeError> {
            let head = Head::regardless(writing, thread)?;
            let objects = &**writing;
            let entries = match &which {
                WhichEntries::AllOf(take) => all_of(objects, &head.state, *take)?,
                WhichEntries::These(entries) => {
                    are_there(objects, &head.state, entries)?;
                    entries.clone()
                }
            };
            let before = writing.shown(head.row.number)?;
            for entry in &entries {
                let known = before.get(entry).copied().unwrap_or_default();
                let shown = showing.on(known);
                if shown != known {
                    writing.set_shown(head.row.number, &[*entry], shown)?;
                }
            }
            Ok(entries.len() as u64)
        })?;
        Ok(count)
    }
}

fn all_of(
    objects: &(impl Objects + ?Sized),
    state: &ThreadState,
    take: Option<TakeId>,
) -> Result<Vec<EntryId>, ChangeError> {
    let take = state.take(objects, take.unwrap_or(state.active))?;
    let take = take.ok_or(ChangeError::Refused(Refusal::NoSuchTake))?;
    take.entries.iter(objects, 0).map(|cell| Ok(cell?.entry)).collect()
}

/// Refuses unless each entry is in some take. The active take holds most of them, so that it is asked first.
fn are_there(
    objects: &(impl Objects + ?Sized),
    state: &ThreadState,
    entries: &[EntryId],
) -> Result<(), ChangeError> {
    let mut sought = entries.to_vec();
    leave_sought(objects, &state.active_take(objects)?, &mut sought)?;
    for cell in state.takes.iter(objects, 0) {
        if sought.is_empty() {
            break;
        }
        if let Some(take) = state.take(objects, cell?.take)? {
            leave_sought(objects, &take, &mut sought)?;
        }
    }
    if sought.is_empty() { Ok(()) } else { Err(ChangeError::Refused(Refusal::NoSuchEntry)) }
}

/// Leaves those that a take does not hold.
fn leave_sought(
    objects: &(impl Objects + ?Sized),
    take: &Take,
    sought: &mut Vec<EntryId>,
) -> Result<(), ChangeError> {
    let mut left = Vec::new();
    for entry in sought.drain(..) {
        if take.entries.find(objects, entry.bytes())?.is_none() {
            left.push(entry);
        }
    }
    *sought = left;
    Ok(())
}
