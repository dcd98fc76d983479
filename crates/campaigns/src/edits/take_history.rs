//! The history of a take: its entries and file changes, in order.

use std::rc::Rc;

use retake_model::id::EntryId;

use crate::folder::Folder;

use super::reference::ModelFault;
use super::replay::FileChange;

/// An event in a take, or in one that it was forked from.
#[derive(Clone, Debug)]
pub(super) enum TakeEvent {
    /// An entry was added. It can be forked at if the user wrote it.
    Entry(EntryId, Author),
    /// Files changed.
    Change(FileChange),
    /// The take was promoted with these files; the second are those in the folder, if known.
    Promoted(Rc<Folder>, Option<Rc<Folder>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Agent,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TakeHistory {
    pub(super) events: Vec<TakeEvent>,
    /// Number of events before the take was created.
    inherited: usize,
}

impl TakeHistory {
    /// The history with one more event.
    pub(super) fn with(&self, event: TakeEvent) -> Self {
        let mut history = self.clone();
        history.events.push(event);
        history
    }

    /// The history with an entry inserted after another one, whose files it has.
    pub(super) fn with_inserted(&self, after: EntryId, new: EntryId) -> Self {
        let (mut history, at) = (self.clone(), self.place(after) + 1);
        history.events.insert(at, TakeEvent::Entry(new, Author::User));
        history.inherited += usize::from(at < self.inherited);
        history
    }

    /// The history with the entries up to this one replaced by a summary, which has the files of the last of them.
    pub(super) fn compressed(&self, last: EntryId, summary: EntryId) -> Self {
        let end = self.place(last);
        let keeps = |(at, event): &(usize, &TakeEvent)| *at > end || !matches!(event, TakeEvent::Entry(..));
        let kept = |events: &[TakeEvent]| -> Vec<TakeEvent> {
            events.iter().enumerate().filter(keeps).map(|(_, event)| event.clone()).collect()
        };
        let at = kept(&self.events[..end]).len();
        let inherited = kept(&self.events[..self.inherited]).len() + usize::from(end < self.inherited);
        let mut history = Self { events: kept(&self.events), inherited };
        history.events.insert(at, TakeEvent::Entry(summary, Author::Agent));
        history
    }

    /// The history as the start of another thread.
    pub(super) fn promoted(&self, files: &Rc<Folder>, found: Option<Rc<Folder>>) -> Self {
        self.with(TakeEvent::Promoted(Rc::clone(files), found))
    }

    /// The entries.
    pub(super) fn entries(&self) -> Vec<(EntryId, Author)> {
        let entry = |event: &TakeEvent| match event {
            TakeEvent::Entry(entry, author) => Some((*entry, *author)),
            _ => None,
        };
        self.events.iter().filter_map(entry).collect()
    }

    fn place(&self, entry: EntryId) -> usize {
        let is_it = |event: &TakeEvent| matches!(event, TakeEvent::Entry(found, _) if *found == entry);
        self.events.iter().position(is_it).expect("an entry of the take")
    }

    /// The history of a take that is created at an entry, including it or not; at the end if there is no entry.
    pub(super) fn split(&self, at: Option<(EntryId, bool)>) -> Self {
        let end = at.map_or(self.events.len(), |(entry, with)| self.place(entry) + usize::from(with));
        Self { events: self.events[..end].to_vec(), inherited: end }
    }

    /// The changes after an entry, newest first, to be undone. `found` are the thread's initial files.
    pub(super) fn undone_since(
        &self,
        entry: EntryId,
        found: &Rc<Folder>,
        mistake: Option<ModelFault>,
    ) -> Vec<FileChange> {
        let mut start = self.place(entry) + 1;
        if mistake == Some(ModelFault::ForksIgnoreInheritedChanges) {
            start = start.max(self.inherited);
        }
        let mut steps = Vec::new();
        for event in self.events.get(start..).unwrap_or_default().iter().rev() {
            match event {
                TakeEvent::Entry(..) => {}
                TakeEvent::Change((before, after)) => steps.push((Rc::clone(after), Rc::clone(before))),
                TakeEvent::Promoted(..) if mistake == Some(ModelFault::ForksStopAtAPromotion) => break,
                TakeEvent::Promoted(files, then) => {
                    steps.push((Rc::clone(then.as_ref().unwrap_or(found)), Rc::clone(files)));
                }
            }
        }
        steps
    }
}
