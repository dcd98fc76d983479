//! Display state of entries. It is stored next to the state and is not part of history: an undo does not expand
//! anything.

use retake_model::command::CommandError;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::Objects;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::EntryPresentation;

use crate::write::change::Head;
use crate::{ChangeError, Timeline};

/// A change of the display of entries; `None` keeps the current value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisplayChange {
    /// Whether only a preview is shown.
    pub collapsed: Option<bool>,
    /// Whether the source text is shown.
    pub source: Option<bool>,
}

/// The entries to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySelection {
    /// All entries of a take; of the active one if `None`.
    AllInTake(Option<TakeId>),
    /// These entries, in any take of the thread.
    These(Vec<EntryId>),
}

impl DisplayChange {
    fn apply_to(self, shown: EntryPresentation) -> EntryPresentation {
        EntryPresentation {
            collapsed: self.collapsed.unwrap_or(shown.collapsed),
            source: self.source.unwrap_or(shown.source),
        }
    }
}

impl Timeline {
    /// Changes the display of entries. Returns how many; changes none if one does not exist.
    pub fn set_entry_display(
        &self,
        thread: ThreadId,
        which: EntrySelection,
        display: DisplayChange,
    ) -> Result<u64, ChangeError> {
        let count = self.store().write(move |writing| -> Result<u64, ChangeError> {
            let head = Head::any_version(writing, thread)?;
            let objects = &**writing;
            let entries = match &which {
                EntrySelection::AllInTake(take) => all_of(objects, &head.state, *take)?,
                EntrySelection::These(entries) => {
                    check_entries_exist(objects, &head.state, entries)?;
                    entries.clone()
                }
            };
            let before = writing.presentations(head.row.number)?;
            for entry in &entries {
                let known = before.get(entry).copied().unwrap_or_default();
                let shown = display.apply_to(known);
                if shown != known {
                    writing.set_presentation(head.row.number, &[*entry], shown)?;
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
    let take = take.ok_or(ChangeError::Refused(CommandError::NoSuchTake))?;
    take.entries.iter(objects, 0).map(|cell| Ok(cell?.entry)).collect()
}

/// Fails unless each entry is in some take. The active take has most of them, so it is searched first.
fn check_entries_exist(
    objects: &(impl Objects + ?Sized),
    state: &ThreadState,
    entries: &[EntryId],
) -> Result<(), ChangeError> {
    let mut sought = entries.to_vec();
    retain_missing(objects, &state.active_take(objects)?, &mut sought)?;
    for cell in state.takes.iter(objects, 0) {
        if sought.is_empty() {
            break;
        }
        if let Some(take) = state.take(objects, cell?.take)? {
            retain_missing(objects, &take, &mut sought)?;
        }
    }
    if sought.is_empty() { Ok(()) } else { Err(ChangeError::Refused(CommandError::NoSuchEntry)) }
}

/// Retains the entries that a take does not contain.
fn retain_missing(
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
