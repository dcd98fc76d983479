//! The history of a thread: a full copy of every state, with the position of every chain.
//!
//! Undo, redo and jump walk along the links from change to change, one by one, without any shortcut.

mod walk;

use std::collections::BTreeMap;

use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;

use super::fault::ModelFault;
use super::plain::{Digest, PlainThread};

pub use walk::{HistoryWalk, WalkResult};

/// A thread in the reference model.
#[derive(Clone, Debug)]
pub struct ReferenceThread {
    /// Its id.
    pub id: ThreadId,
    /// Whether it was created as a long thread.
    pub long: bool,
    /// Its versions, from 1.
    pub log: Vec<LogEntry>,
    /// Its visibility, which is not part of the log.
    pub marks: SharingMarks,
}

/// Visibility, private flag, and whether support may see the thread.
pub type SharingMarks = (String, bool, bool);

/// One version of a thread.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The complete state; dropped once it is no longer reachable.
    pub picture: Option<Box<PlainThread>>,
    /// The hash of the state.
    pub digest: Digest,
    /// The active take.
    pub active: TakeId,
    /// All takes.
    pub takes: Vec<TakeId>,
    /// The event that led to it.
    pub event: Event,
    /// The take of the step; `None` for a step of the thread.
    pub owner: Option<TakeId>,
    /// The previous change of the same chain; 0 for the first.
    pub parent: usize,
    /// The changes that it undid, in order.
    pub undone_changes: Vec<usize>,
    /// The position of every chain after it.
    pub chains: BTreeMap<Option<TakeId>, ChainPosition>,
    /// Its turn, the unit of undo.
    pub turn: u64,
    /// Its time.
    pub time: i64,
}

/// The position of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainPosition {
    /// The newest change that is not undone.
    pub position: usize,
    /// The target of redo.
    pub tip: usize,
    /// The newest change ever made.
    pub changed: usize,
    /// The version that moved it here.
    pub since: usize,
}

/// The event that led to a version, as far as later rules depend on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A change.
    Change,
    /// A change of a draft.
    Typed(TakeId, Actor),
    /// The thread was archived.
    Archived,
    /// The thread was restored.
    Restored,
    /// A take was promoted.
    Promoted(ThreadId),
    /// A take was created.
    Made,
    /// All takes were cleared.
    Reset,
    /// Undo, redo, jump or save: no change of its own.
    Moved,
}

impl ReferenceThread {
    /// Creates a thread with its first version.
    pub fn new(id: ThreadId, picture: PlainThread, turn: u64, time: i64) -> Self {
        let digest = picture.digest();
        let marks = picture.marks();
        let at = ChainPosition { position: 1, tip: 1, changed: 1, since: 1 };
        let first = LogEntry {
            active: picture.active,
            takes: picture.take_ids(),
            picture: Some(Box::new(picture)),
            digest,
            event: Event::Change,
            owner: None,
            parent: 0,
            undone_changes: Vec::new(),
            chains: BTreeMap::from([(None, at)]),
            turn,
            time,
        };
        Self { id, long: false, log: vec![first], marks }
    }

    /// The last versions, one per line, for debugging: take, turn, parent and chain positions.
    pub fn outline(&self) -> String {
        const MAX_SAVED: usize = 60;
        let name = |take: &TakeId| take.to_string().chars().rev().take(4).collect::<String>();
        let mut text = String::from("\n");
        for (at, moment) in self.log.iter().enumerate().skip(self.log.len().saturating_sub(MAX_SAVED)) {
            let owner = moment.owner.as_ref().map_or("thread".to_owned(), name);
            let (version, active) = (at + 1, name(&moment.active));
            let LogEntry { event, turn, parent, .. } = moment;
            let line = format!("{version} {owner} after {parent}, turn {turn}, active {active}, {event:?}");
            text.push_str(&line);
            if *event == Event::Moved {
                for (owner, at) in &moment.chains {
                    let owner = owner.as_ref().map_or("thread".to_owned(), name);
                    let place = format!("; {owner} at {} of {} since {}", at.position, at.tip, at.since);
                    text.push_str(&place);
                }
            }
            text.push('\n');
        }
        text
    }

    /// Number of versions.
    pub fn version(&self) -> usize {
        self.log.len()
    }

    /// The last version.
    pub fn head(&self) -> &LogEntry {
        self.log.last().expect("a thread has a first moment")
    }

    /// The current state.
    pub fn picture(&self) -> &PlainThread {
        self.head().picture.as_deref().expect("the last picture is never dropped")
    }

    /// Whether every state is still stored.
    pub fn is_whole(&self) -> bool {
        self.log.iter().all(|moment| moment.picture.is_some())
    }

    /// The version with this number.
    pub fn at(&self, version: usize) -> &LogEntry {
        &self.log[version - 1]
    }

    /// The position of a chain at a version.
    pub fn chain(&self, version: usize, owner: Option<TakeId>) -> ChainPosition {
        self.at(version).chains.get(&owner).copied().unwrap_or_default()
    }

    /// Adds a change.
    pub fn change(
        &mut self,
        picture: PlainThread,
        event: Event,
        owner: Option<TakeId>,
        (turn, now): (u64, i64),
        fault: Option<ModelFault>,
    ) {
        let version = self.version() + 1;
        let head = self.head();
        let before = self.chain(self.version(), owner);
        let survives = fault == Some(ModelFault::RedoSurvivesAChange) && before.tip != before.position;
        let tip = if survives { before.tip } else { version };
        let mut chains = head.chains.clone();
        chains.insert(owner, ChainPosition { position: version, tip, changed: version, since: version });
        self.log.push(LogEntry {
            digest: picture.digest(),
            active: picture.active,
            takes: picture.take_ids(),
            picture: Some(Box::new(picture)),
            event,
            owner,
            parent: before.position,
            undone_changes: Vec::new(),
            chains,
            turn,
            time: now,
        });
    }

    /// Adds a saved name.
    pub fn note(&mut self, turn: u64, now: i64) {
        let head = self.head().clone();
        self.log.push(LogEntry {
            event: Event::Moved,
            owner: None,
            undone_changes: Vec::new(),
            turn,
            time: now,
            ..head
        });
    }

    /// Adds a move.
    pub fn add_move(&mut self, way: WalkResult, turn: u64, now: i64) {
        let (version, head) = (self.version() + 1, self.head());
        let mut chains = head.chains.clone();
        for (owner, at) in way.chains {
            let before = chains.get(&owner).copied().unwrap_or_default();
            if (at.position, at.tip) != (before.position, before.tip) {
                chains.insert(owner, ChainPosition { since: version, ..at });
            }
        }
        self.log.push(LogEntry {
            digest: way.picture.digest(),
            active: way.picture.active,
            takes: way.picture.take_ids(),
            picture: Some(Box::new(way.picture)),
            event: Event::Moved,
            owner: None,
            parent: 0,
            undone_changes: way.undone_changes,
            chains,
            turn,
            time: now,
        });
    }

    /// A change and its ancestors in the same chain.
    pub fn path(&self, from: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut version = from;
        while version != 0 {
            path.push(version);
            version = self.at(version).parent;
        }
        path
    }

    /// Whether a change is not undone.
    pub fn is_done(&self, version: usize) -> bool {
        let at = self.chain(self.version(), self.at(version).owner);
        self.path(at.position).contains(&version)
    }

    /// Whether a change is undone and on the way to the target of redo.
    pub fn is_ahead(&self, version: usize) -> bool {
        let owner = self.at(version).owner;
        let beside = if owner.is_some() { None } else { Some(self.picture().active) };
        let (at, beside) = (self.chain(self.version(), owner), self.chain(self.version(), beside));
        let cleared = beside.changed > at.since;
        !cleared && self.path(at.tip).contains(&version) && !self.path(at.position).contains(&version)
    }

    /// Whether the thread is unchanged since its creation, apart from being archived.
    pub fn untouched(&self) -> bool {
        PlainThread { deleted: None, ..self.picture().clone() }.digest() == self.log[0].digest
    }
}
