//! Carries the origin of lines through the versions of a text.
//!
//! ```text
//!   version 1 (before Retake)    a b c        – – –
//!   step 2 wrote                 a B c        – 2 –
//!   step 3 wrote                 a B c d      – 2 – 3
//!   step 4 restored              a b c d      – – – 3      b has its old origin again, d keeps its own
//! ```
//!
//! A step that writes owns the lines it adds. A step that restores older text owns none of it: each such line has the
//! origin that it had in the newest version that contains it. Only lines that no version ever had (such as conflict
//! markers) belong to that step.

use std::collections::HashMap;
use std::hash::Hash;

use retake_model::diff::{DiffError, changes, lines};

/// The step that wrote a line; `None` for lines older than all steps.
pub(super) type Origin = Option<u32>;

/// Limit on the older versions to search for lines that a step restored in a new combination.
const MAX_SEARCHED: usize = 64;

/// Effect of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepEffect {
    /// It writes new text.
    Write,
    /// It restores older text: undo, redo, jump, restore, the files of another take.
    Restore,
}

/// The versions of a text so far, with the origin of each line.
pub(super) struct Trace<Id> {
    known: HashMap<Id, KnownFile>,
    newest: u64,
}

/// A version with known origins.
struct KnownFile {
    /// Runs of lines with the same origin, since single origins of long texts over long histories would need too much
    /// memory.
    runs: Vec<(Origin, usize)>,
    /// Higher is newer.
    age: u64,
}

/// Reads versions again.
pub(super) trait TextSource<Id> {
    /// Why it cannot be read.
    type Error;
    /// The bytes of a version.
    fn text(&self, id: Id) -> Result<Vec<u8>, Self::Error>;
}

impl<Id: Copy + Eq + Hash + Ord> Trace<Id> {
    pub(super) fn new() -> Self {
        Self { known: HashMap::new(), newest: 0 }
    }

    /// Processes a step from one version to another; `None` where one side has no text.
    pub(super) fn step<T: TextSource<Id>>(
        &mut self,
        number: u32,
        does: StepEffect,
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
            // The text changed outside of any step: compare it with known versions, or else treat it as the first one.
            let origins = self.trace_new_text(text, texts)?;
            self.keep(*id, &origins);
        }
        let Some(id) = after else { return Ok(()) };
        if does == StepEffect::Restore && self.known.contains_key(&id) {
            self.touch(id);
            return Ok(());
        }
        let text = texts.text(id)?;
        let mut origins = match &before {
            Some((id, before)) => carry(&self.origins(*id), before, &text),
            None => vec![None; lines(&text).count()],
        };
        if does == StepEffect::Restore {
            self.search(&mut origins, &text, texts)?;
        }
        let origins: Vec<Origin> =
            origins.into_iter().map(|carried| carried.unwrap_or(Some(number))).collect();
        self.keep(id, &origins);
        Ok(())
    }

    /// The origin of each line of a known version; for an unknown one, of the lines that the newest known version has
    /// too.
    pub(super) fn lines<T: TextSource<Id>>(&self, id: Id, texts: &T) -> Result<Vec<Origin>, T::Error> {
        if self.known.contains_key(&id) {
            Ok(self.origins(id))
        } else {
            self.trace_new_text(&texts.text(id)?, texts)
        }
    }

    fn origins(&self, id: Id) -> Vec<Origin> {
        let Some(known) = self.known.get(&id) else { return Vec::new() };
        known.runs.iter().flat_map(|(origin, count)| std::iter::repeat_n(*origin, *count)).collect()
    }

    fn keep(&mut self, id: Id, origins: &[Origin]) {
        let runs = origins.chunk_by(|left, right| left == right).map(|run| (run[0], run.len())).collect();
        self.newest += 1;
        self.known.insert(id, KnownFile { runs, age: self.newest });
    }

    fn touch(&mut self, id: Id) {
        self.newest += 1;
        if let Some(known) = self.known.get_mut(&id) {
            known.age = self.newest;
        }
    }

    /// Known versions, newest first.
    fn by_age(&self) -> Vec<Id> {
        let mut ids: Vec<(u64, Id)> = self.known.iter().map(|(id, known)| (known.age, *id)).collect();
        ids.sort_unstable_by(|left, right| right.cmp(left));
        ids.into_iter().map(|(_, id)| id).collect()
    }

    fn trace_new_text<T: TextSource<Id>>(&self, text: &[u8], texts: &T) -> Result<Vec<Origin>, T::Error> {
        let carried = match self.by_age().first() {
            Some(newest) => carry(&self.origins(*newest), &texts.text(*newest)?, text),
            None => vec![None; lines(text).count()],
        };
        Ok(carried.into_iter().map(Option::flatten).collect())
    }

    /// Searches older versions for lines without an origin.
    fn search<T: TextSource<Id>>(
        &self,
        origins: &mut [Option<Origin>],
        text: &[u8],
        texts: &T,
    ) -> Result<(), T::Error> {
        for id in self.by_age().into_iter().take(MAX_SEARCHED) {
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

/// The origins of lines that both texts have; `None` for added lines.
fn carry(origins: &[Origin], before: &[u8], after: &[u8]) -> Vec<Option<Origin>> {
    let count = lines(after).count();
    let changes = match changes(before, after) {
        Ok(changes) => changes,
        Err(DiffError::Binary | DiffError::TooLarge) => return vec![None; count],
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
