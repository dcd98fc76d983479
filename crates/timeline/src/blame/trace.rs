//! How lines carry their origin through the versions of a text.
//!
//! ```text
//!   version 1 (before Retake)    a b c        – – –
//!   step 2 wrote                 a B c        – 2 –
//!   step 3 wrote                 a B c d      – 2 – 3
//!   step 4 brought back          a b c d      – – – 3      b is as old as it ever was, d stays
//! ```
//!
//! A step that writes owns the lines that it brings. A step that brings older text back owns none of that: each
//! such line has the origin that it had in the newest version which holds it. Only what no version ever held (the
//! markers of a conflict, say) is that step's own.

use std::collections::HashMap;
use std::hash::Hash;

use retake_model::diff::{Incomparable, changes, lines};

/// Where a line comes from: a step, or before all of them.
pub(super) type Origin = Option<u32>;

/// How many older versions are searched for the lines that a step brought back in a new mixture.
const MOST_SEARCHED: usize = 64;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It writes.
    Write,
    /// It brings older text back: undo, redo, jump, restore, another take's files.
    BringBack,
}

/// The versions of a text so far, with the origin of each line.
pub(super) struct Trace<Id> {
    known: HashMap<Id, Known>,
    newest: u64,
}

/// A version whose lines are known.
struct Known {
    /// Runs of lines of one origin. Origins of long texts over long histories would fill the memory one by one.
    runs: Vec<(Origin, usize)>,
    /// The higher, the newer.
    age: u64,
}

/// Reads a version again.
pub(super) trait Texts<Id> {
    /// Why it cannot be read.
    type Error;
    /// The bytes of a version.
    fn text(&self, id: Id) -> Result<Vec<u8>, Self::Error>;
}

impl<Id: Copy + Eq + Hash + Ord> Trace<Id> {
    pub(super) fn new() -> Self {
        Self { known: HashMap::new(), newest: 0 }
    }

    /// Takes in a step from one version to another; `None` where there is no text on that side.
    pub(super) fn step<T: Texts<Id>>(
        &mut self,
        number: u32,
        does: Does,
        before: Option<Id>,
        after: Option<Id>,
        texts: &T,
    ) -> Result<(), T::Error> {
        let before = match before {
            Some(id) => Some((id, texts.text(id)?)),
            None => None,
        };
        if let Some((id, text)) = &before
            && !self.known.contains_key(id)
        {
            // Nobody saw it come: it is what a version that is known became unseen, or what was there first.
            let origins = self.unseen(text, texts)?;
            self.keep(*id, &origins);
        }
        let Some(id) = after else { return Ok(()) };
        if does == Does::BringBack && self.known.contains_key(&id) {
            self.touch(id);
            return Ok(());
        }
        let text = texts.text(id)?;
        let mut origins = match &before {
            Some((id, before)) => carry(&self.origins(*id), before, &text),
            None => vec![None; lines(&text).count()],
        };
        if does == Does::BringBack {
            self.search(&mut origins, &text, texts)?;
        }
        let origins: Vec<Origin> =
            origins.into_iter().map(|carried| carried.unwrap_or(Some(number))).collect();
        self.keep(id, &origins);
        Ok(())
    }

    /// The origin of each line of a version that is known; else of each line that the newest known one has too.
    pub(super) fn lines<T: Texts<Id>>(&self, id: Id, texts: &T) -> Result<Vec<Origin>, T::Error> {
        if self.known.contains_key(&id) { Ok(self.origins(id)) } else { self.unseen(&texts.text(id)?, texts) }
    }

    fn origins(&self, id: Id) -> Vec<Origin> {
        let Some(known) = self.known.get(&id) else { return Vec::new() };
        known.runs.iter().flat_map(|(origin, count)| std::iter::repeat_n(*origin, *count)).collect()
    }

    fn keep(&mut self, id: Id, origins: &[Origin]) {
        let runs = origins.chunk_by(|left, right| left == right).map(|run| (run[0], run.len())).collect();
        self.newest += 1;
        self.known.insert(id, Known { runs, age: self.newest });
    }

    fn touch(&mut self, id: Id) {
        self.newest += 1;
        if let Some(known) = self.known.get_mut(&id) {
            known.age = self.newest;
        }
    }

    /// The versions that are known, newest first.
    fn by_age(&self) -> Vec<Id> {
        let mut ids: Vec<(u64, Id)> = self.known.iter().map(|(id, known)| (known.age, *id)).collect();
        ids.sort_unstable_by(|left, right| right.cmp(left));
        ids.into_iter().map(|(_, id)| id).collect()
    }

    fn unseen<T: Texts<Id>>(&self, text: &[u8], texts: &T) -> Result<Vec<Origin>, T::Error> {
        let carried = match self.by_age().first() {
            Some(newest) => carry(&self.origins(*newest), &texts.text(*newest)?, text),
            None => vec![None; lines(text).count()],
        };
        Ok(carried.into_iter().map(Option::flatten).collect())
    }

    /// Finds the lines without an origin in older versions.
    fn search<T: Texts<Id>>(
        &self,
        origins: &mut [Option<Origin>],
        text: &[u8],
        texts: &T,
    ) -> Result<(), T::Error> {
        for id in self.by_age().into_iter().take(MOST_SEARCHED) {
            if origins.iter().all(Option::is_some) {
                break;
            }
            let found = carry(&self.origins(id), &texts.text(id)?, text);
            for (origin, found) in origins.iter_mut().zip(found) {
                *origin = origin.or(found);
            }
        }
        Ok(())
    }
}

/// The origins of the lines of one text that stand in another as they were; `None` for lines that came.
fn carry(origins: &[Origin], before: &[u8], after: &[u8]) -> Vec<Option<Origin>> {
    let count = lines(after).count();
    let changes = match changes(before, after) {
        Ok(changes) => changes,
        Err(Incomparable::Binary | Incomparable::TooLarge) => return vec![None; count],
    };
    let mut carried = Vec::with_capacity(count);
    let mut old = 0;
    for change in changes {
        carried.extend(origins[old..change.before.start].iter().copied().map(Some));
        carried.extend(std::iter::repeat_n(None, change.after.len()));
        old = change.before.end;
    }
    carried.extend(origins[old..].iter().copied().map(Some));
    carried
}

#[cfg(test)]
mod tests;
