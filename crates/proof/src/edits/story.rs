//! What a take consists of, in the order in which it came about: its entries and the changes of files between them.

use std::rc::Rc;

use retake_model::id::EntryId;

use crate::folder::Folder;

use super::naive::Mistake;
use super::replay::Step;

/// One thing that happened in a take, or in one that it was split off from.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// An entry was added. It can be forked at if the user wrote it.
    Entry(EntryId, Author),
    /// Files were changed.
    Change(Step),
    /// The take became a thread of its own, with these files; those were in the folder, if any are known.
    Promoted(Rc<Folder>, Option<Rc<Folder>>),
}

/// Who wrote an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Agent,
}

/// The story of a take.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) events: Vec<Event>,
    /// So many of them happened before the take began.
    inherited: usize,
}

impl Story {
    /// The same with one more event.
    pub(super) fn with(&self, event: Event) -> Self {
        let mut story = self.clone();
        story.events.push(event);
        story
    }

    /// The same as the beginning of another thread.
    pub(super) fn promoted(&self, files: &Rc<Folder>, found: Option<Rc<Folder>>) -> Self {
        self.with(Event::Promoted(Rc::clone(files), found))
    }

    /// The entries.
    pub(super) fn entries(&self) -> Vec<(EntryId, Author)> {
        let entry = |event: &Event| match event {
            Event::Entry(entry, author) => Some((*entry, *author)),
            _ => None,
        };
        self.events.iter().filter_map(entry).collect()
    }

    fn place(&self, entry: EntryId) -> usize {
        let is_it = |event: &Event| matches!(event, Event::Entry(found, _) if *found == entry);
        self.events.iter().position(is_it).expect("an entry of the take")
    }

    /// A take that is split off at an entry, with it or without it; behind everything if there is no entry.
    pub(super) fn split(&self, at: Option<(EntryId, bool)>) -> Self {
        let end = at.map_or(self.events.len(), |(entry, with)| self.place(entry) + usize::from(with));
        Self { events: self.events[..end].to_vec(), inherited: end }
    }

    /// The changes behind an entry, to be undone: the newest first. The files that a thread found when it began are given.
    pub(super) fn undone_since(
        &self,
        entry: EntryId,
        found: &Rc<Folder>,
        mistake: Option<Mistake>,
    ) -> Vec<Step> {
        let mut start = self.place(entry) + 1;
        if mistake == Some(Mistake::ForksIgnoreInheritedChanges) {
            start = start.max(self.inherited);
        }
        let mut steps = Vec::new();
        for event in self.events.get(start..).unwrap_or_default().iter().rev() {
            match event {
                Event::Entry(..) => {}
                Event::Change((before, after)) => steps.push((Rc::clone(after), Rc::clone(before))),
                Event::Promoted(..) if mistake == Some(Mistake::ForksStopAtAPromotion) => break,
                Event::Promoted(files, then) => {
                    steps.push((Rc::clone(then.as_ref().unwrap_or(found)), Rc::clone(files)));
                }
            }
        }
        steps
    }
}
