//! Compares a thread in the store with the model.

use std::collections::HashMap;
use std::fmt::Debug;

use retake_model::content::ContentId;
use retake_model::object::load;
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_timeline::{Reader, Timeline, Unit};

use super::log::{Event, HistoryWalk, ReferenceThread};
use super::observe::{Observer, entry_content, picture, visibility};
use super::plain::{Digest, PlainThread};
use crate::rng::Rng;
use crate::violation::BoxError;

/// Compares threads, and records the id of each content.
#[derive(Debug, Default)]
pub struct Checker {
    observer: Observer,
    names: HashMap<Digest, ContentId>,
}

impl Checker {
    /// Discards cached content, so that it is read again.
    pub fn forget_seen(&mut self) {
        self.observer = Observer::default();
    }

    /// Compares the current state; returns its id.
    pub fn thread(
        &mut self,
        timeline: &Timeline,
        reference: &ReferenceThread,
    ) -> Result<ContentId, BoxError> {
        let reader = timeline.read()?;
        let head = reader.head(reference.id)?.operation;
        let expected = reference.head();
        same("version", &head.version, &(reference.version() as u64))?;
        same("time", &head.time.millis(), &expected.time)?;
        let undo_status = reader.history(reference.id).undo_status()?;
        let walk = || HistoryWalk::new(reference, None, None);
        same("position", &undo_status.position, &(walk().position() as u64))?;
        same("can_undo", &undo_status.can_undo, &walk().step(Unit::Turn, true))?;
        same("can_redo", &undo_status.can_redo, &walk().step(Unit::Turn, false))?;
        let state: ThreadState = load(&reader.queries(), head.after)?;
        self.state(&reader, &state, expected.digest, Some(reference.picture()))?;
        let name = *self.names.entry(expected.digest).or_insert(head.after);
        same("state id of the same content", &head.after, &name)?;
        index(&reader, reference)?;
        Ok(head.after)
    }

    /// Compares every version.
    pub fn history(&mut self, timeline: &Timeline, reference: &ReferenceThread) -> Result<(), BoxError> {
        let reader = timeline.read()?;
        for version in 1..=reference.version() {
            let state = reader.state_at(reference.id, version as u64)?;
            let moment = reference.at(version);
            self.state(&reader, &state, moment.digest, moment.picture.as_deref())
                .map_err(|trouble| format!("version {version}: {trouble}"))?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        reader: &Reader<'_>,
        state: &ThreadState,
        expected: Digest,
        reference: Option<&PlainThread>,
    ) -> Result<(), BoxError> {
        let queries = reader.queries();
        if self.observer.digest(&queries, state)? == expected {
            return Ok(());
        }
        let found = picture(&queries, state)?;
        let difference = reference.and_then(|reference| found.difference(reference));
        Err(difference.unwrap_or_else(|| "a state differs from its earlier content".to_owned()).into())
    }
}

/// Compares one page of the active take, and the flags of the whole history.
pub fn closely(timeline: &Timeline, reference: &ReferenceThread, rng: &mut Rng) -> Result<(), BoxError> {
    let reader = timeline.read()?;
    let state = reader.state(reference.id)?;
    let take = state.active_take(&reader.queries())?;
    let expected =
        reference.picture().take(reference.picture().active).ok_or("the active take is missing")?;
    let start = rng.index(expected.entries.len() + 1);
    let end = (start + rng.index(20)).min(expected.entries.len());
    let page = reader.entries(reference.id, &take).page(start as u64..end as u64)?;
    same("entries on a page", &page.len(), &(end - start))?;
    for (view, entry) in page.iter().zip(&expected.entries[start..]) {
        same("entry on a page", &view.id, &entry.id)?;
        same("words on a page", &entry_content(&view.entry), &entry.entry_content)?;
        let alone = reader.entries(reference.id, &take).get(entry.id)?.ok_or("an entry cannot be found")?;
        same("place of an entry", &(alone.0 + 1), &view.number)?;
    }
    let position = HistoryWalk::new(reference, None, None).position();
    for item in reader.history(reference.id).list(None, usize::MAX)? {
        let version = item.version as usize;
        let moment = reference.at(version);
        let moved = moment.event == Event::Moved;
        same("current", &item.current, &(version == position))?;
        same("undone", &item.undone, &(!moved && !reference.is_done(version)))?;
        same("redoable", &item.redoable, &(!moved && reference.is_ahead(version)))?;
        same("time in history", &item.time.millis(), &moment.time)?;
    }
    Ok(())
}

/// Compares the listed columns of the thread and its takes.
fn index(reader: &Reader<'_>, reference: &ReferenceThread) -> Result<(), BoxError> {
    let row = reader.thread(reference.id)?;
    let (shown, expected) = (&row.summary, reference.picture());
    same("listed title", &shown.title, &expected.title)?;
    same("listed tags", &shown.tags, &expected.tags)?;
    same("listed pin", &shown.pinned, &expected.pinned)?;
    let marks = (visibility(shown.visibility), shown.private, shown.shared_with_support);
    same("listed marks", &marks, &reference.marks)?;
    same("listed version", &shown.version, &(reference.version() as u64))?;
    same("listed number of takes", &shown.takes, &(expected.takes.len() as u64))?;
    same("listed active take", &shown.active.id, &expected.active)?;
    same("listed deletion", &shown.deleted.map(Timestamp::millis), &expected.deleted)?;
    same("listed time", &shown.updated.millis(), &reference.head().time)?;
    let mut listed: Vec<_> = reader
        .queries()
        .takes_of(row.number)?
        .into_iter()
        .map(|take| (take.summary.id, take.summary.name, take.summary.entries, take.summary.parent))
        .collect();
    let mut takes: Vec<_> = expected
        .takes
        .iter()
        .map(|take| (take.id, take.name.clone(), take.entries.len() as u64, take.parent))
        .collect();
    listed.sort();
    takes.sort();
    same("listed takes", &listed, &takes)
}

/// Fails if the values differ.
pub fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), BoxError> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} should be {expected:?}").into()) }
}

/// Fails if the states differ; the description is only computed then.
pub fn same_state<T: PartialEq + Debug>(
    what: impl Fn() -> String,
    found: &T,
    expected: &T,
) -> Result<(), BoxError> {
    if found == expected { Ok(()) } else { same(&what(), found, expected) }
}
