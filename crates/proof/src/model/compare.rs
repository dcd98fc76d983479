//! Compares a thread in the store with the model.

use std::collections::HashMap;
use std::fmt::Debug;

use retake_model::content::ContentId;
use retake_model::object::load;
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_timeline::{Looking, Timeline, Unit};

use super::log::{Event, NaiveThread, Walk};
use super::observe::{Observer, picture, said, visibility};
use super::picture::{Digest, ThreadPicture};
use crate::dice::Dice;
use crate::violation::Trouble;

/// Compares threads, and records the id of each content.
#[derive(Debug, Default)]
pub struct Checker {
    observer: Observer,
    names: HashMap<Digest, ContentId>,
}

impl Checker {
    /// Discards cached content, so that it is read again.
    pub fn look_afresh(&mut self) {
        self.observer = Observer::default();
    }

    /// Compares the current state; returns its id.
    pub fn thread(&mut self, timeline: &Timeline, naive: &NaiveThread) -> Result<ContentId, Trouble> {
        let looking = timeline.look()?;
        let head = looking.head(naive.id)?.operation;
        let expected = naive.head();
        same("version", &head.version, &(naive.version() as u64))?;
        same("time", &head.time.millis(), &expected.time)?;
        let standing = looking.standing(naive.id)?;
        let walk = || Walk::new(naive, None, None);
        same("position", &standing.position, &(walk().position() as u64))?;
        same("can_undo", &standing.can_undo, &walk().step(Unit::Turn, true))?;
        same("can_redo", &standing.can_redo, &walk().step(Unit::Turn, false))?;
        let state: ThreadState = load(&looking.queries(), head.after)?;
        self.state(&looking, &state, expected.digest, Some(naive.picture()))?;
        let name = *self.names.entry(expected.digest).or_insert(head.after);
        same("state id of the same content", &head.after, &name)?;
        index(&looking, naive)?;
        Ok(head.after)
    }

    /// Compares every version.
    pub fn history(&mut self, timeline: &Timeline, naive: &NaiveThread) -> Result<(), Trouble> {
        let looking = timeline.look()?;
        for version in 1..=naive.version() {
            let state = looking.state_at(naive.id, version as u64)?;
            let moment = naive.at(version);
            self.state(&looking, &state, moment.digest, moment.picture.as_deref())
                .map_err(|trouble| format!("version {version}: {trouble}"))?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        looking: &Looking<'_>,
        state: &ThreadState,
        expected: Digest,
        naive: Option<&ThreadPicture>,
    ) -> Result<(), Trouble> {
        let queries = looking.queries();
        if self.observer.digest(&queries, state)? == expected {
            return Ok(());
        }
        let found = picture(&queries, state)?;
        let difference = naive.and_then(|naive| found.difference(naive));
        Err(difference.unwrap_or_else(|| "a state is not what it was".to_owned()).into())
    }
}

/// Compares one page of the active take, and the flags of the whole history.
pub fn closely(timeline: &Timeline, naive: &NaiveThread, dice: &mut Dice) -> Result<(), Trouble> {
    let looking = timeline.look()?;
    let state = looking.state(naive.id)?;
    let take = state.active_take(&looking.queries())?;
    let expected = naive.picture().take(naive.picture().active).ok_or("the active take is missing")?;
    let start = dice.index(expected.entries.len() + 1);
    let end = (start + dice.index(20)).min(expected.entries.len());
    let page = looking.page(naive.id, &take, start as u64..end as u64)?;
    same("entries on a page", &page.len(), &(end - start))?;
    for (view, entry) in page.iter().zip(&expected.entries[start..]) {
        same("entry on a page", &view.id, &entry.id)?;
        same("words on a page", &said(&view.entry), &entry.said)?;
        let alone = looking.entry(&take, entry.id)?.ok_or("an entry cannot be found")?;
        same("place of an entry", &(alone.0 + 1), &view.number)?;
    }
    let position = Walk::new(naive, None, None).position();
    for item in looking.history(naive.id, None, usize::MAX)? {
        let version = item.version as usize;
        let moment = naive.at(version);
        let moved = moment.event == Event::Moved;
        same("current", &item.current, &(version == position))?;
        same("undone", &item.undone, &(!moved && !naive.is_done(version)))?;
        same("redoable", &item.redoable, &(!moved && naive.is_ahead(version)))?;
        same("time in history", &item.time.millis(), &moment.time)?;
    }
    Ok(())
}

/// Compares the listed columns of the thread and its takes.
fn index(looking: &Looking<'_>, naive: &NaiveThread) -> Result<(), Trouble> {
    let row = looking.thread(naive.id)?;
    let (shown, expected) = (&row.summary, naive.picture());
    same("listed title", &shown.title, &expected.title)?;
    same("listed tags", &shown.tags, &expected.tags)?;
    same("listed pin", &shown.pinned, &expected.pinned)?;
    let marks = (visibility(shown.visibility), shown.private, shown.shared_with_support);
    same("listed marks", &marks, &naive.marks)?;
    same("listed version", &shown.version, &(naive.version() as u64))?;
    same("listed number of takes", &shown.takes, &(expected.takes.len() as u64))?;
    same("listed active take", &shown.active.id, &expected.active)?;
    same("listed deletion", &shown.deleted.map(Timestamp::millis), &expected.deleted)?;
    same("listed time", &shown.updated.millis(), &naive.head().time)?;
    let mut listed: Vec<_> = looking
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
pub fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), Trouble> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} should be {expected:?}").into()) }
}

/// Fails if the states differ; the description is only computed then.
pub fn same_state<T: PartialEq + Debug>(
    what: impl Fn() -> String,
    found: &T,
    expected: &T,
) -> Result<(), Trouble> {
    if found == expected { Ok(()) } else { same(&what(), found, expected) }
}
