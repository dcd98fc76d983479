//! The files of takes: which operations recorded them, and which steps restore them.

use std::rc::Rc;

use crate::folder::Folder;

use super::reference::Thread;
use super::replay::FileChange;
use super::take_history::TakeEvent;

impl Thread {
    /// The target of an undo or redo of the conversation alone, which skips restores of files.
    pub(super) fn alone(&self, back: bool) -> Option<usize> {
        let mut from = self.head().position;
        loop {
            let to = if back { self.undo_from(from)? } else { self.redo_from(from)? };
            let (newer, older) = if back { (from, to) } else { (to, from) };
            let mut passed = self.way(newer).into_iter().take_while(|version| *version != older);
            if passed.any(|version| !self.operation(version).restores) {
                return Some(to);
            }
            from = to;
        }
    }

    /// The take whose files are in the folder.
    pub(super) fn in_folder(&self) -> usize {
        self.in_folder_at(self.version())
    }

    fn in_folder_at(&self, version: usize) -> usize {
        let operation = self.operation(version);
        // An undone take no longer exists.
        if self.has_take(version, operation.in_folder) { operation.in_folder } else { operation.take }
    }

    /// Returns whether a take exists after an operation: its creation is not undone, and it is not promoted.
    fn has_take(&self, version: usize, take: usize) -> bool {
        let way = self.way(self.operation(version).position);
        let first = self.log.iter().position(|old| old.moved.is_none() && old.take == take);
        let is_made = first.is_some_and(|first| way.contains(&(first + 1)));
        is_made && !self.promoted.iter().any(|(other, at)| *other == take && way.contains(at))
    }

    /// Returns whether an operation moved the files of a take out of the folder.
    fn leaves(&self, version: usize, take: usize) -> bool {
        let operation = self.operation(version);
        let moves = version > 1 && operation.files.is_some() && !operation.seen;
        moves
            && operation.in_folder != take
            && self.in_folder_at(version - 1) == take
            && !self.is_untouched(version)
    }

    /// Returns whether a promoted thread had changed no files before an operation, so that the folder has the
    /// files of another thread.
    fn is_untouched(&self, version: usize) -> bool {
        let earlier = &self.log[1..version.saturating_sub(1).max(1)];
        self.promotion().is_some() && earlier.iter().all(|old| old.files.is_none() || old.seen)
    }

    /// The files in the folder when the take was promoted, and those of the take.
    fn promotion(&self) -> Option<FileChange> {
        let history = self.operation(1).histories.first()?;
        match history.events.last()? {
            TakeEvent::Promoted(files, found) => Some((Rc::clone(found.as_ref()?), Rc::clone(files))),
            _ => None,
        }
    }

    /// The files of a take that an operation left in the folder or moved out of it, if the take had the same
    /// changes then as now. Moves along the log also record other files of a take.
    pub(super) fn shows(&self, version: usize, take: usize) -> Option<&Rc<Folder>> {
        let operation = self.operation(version);
        let (before, after) = operation.files.as_ref()?;
        let leaves = self.leaves(version, take);
        if !leaves && operation.in_folder != take || operation.seen && self.is_untouched(version) {
            return None;
        }
        let then = if leaves { version - 1 } else { version };
        let same = self.last_work(then, take) == self.last_work(self.version(), take);
        same.then_some(if leaves { before } else { after })
    }

    /// The last file change of a take at a version.
    fn last_work(&self, version: usize, take: usize) -> Option<usize> {
        let way = self.way(self.operation(version).position);
        way.into_iter().find(|step| self.operation(*step).of_take && self.operation(*step).take == take)
    }

    /// The steps that move the files of a take into the folder; `None` if they are unknown.
    pub(super) fn steps_to(&self, take: usize) -> Option<Vec<FileChange>> {
        let untouched = self.is_untouched(self.version() + 1);
        if take == self.in_folder() {
            return Some(if untouched && take == 0 {
                self.promotion().into_iter().collect()
            } else {
                Vec::new()
            });
        }
        let mut steps = Vec::new();
        for version in (1..=self.version()).rev() {
            let Some((before, after)) = &self.operation(version).files else { continue };
            if self.operation(version).seen && self.is_untouched(version) {
                continue;
            }
            let shown = self.shows(version, take);
            if shown != Some(after) || self.leaves(version, take) {
                steps.push((Rc::clone(after), Rc::clone(before)));
            }
            if shown.is_some() {
                if version == 1 {
                    steps.extend(self.promotion());
                }
                return Some(steps);
            }
        }
        None
    }
}
