//! The history of one thread: every state it ever had, copied whole, with where every chain was then.
//!
//! Undo, redo and jump are walks along the links from change to change, one by one. There are no hops, no depths, nothing
//! that is remembered to make them fast.

mod walk;

use std::collections::BTreeMap;

use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;

use super::mutant::Mutant;
use super::picture::{Digest, ThreadPicture};

pub use walk::{Walk, Way};

/// A thread as the naive model knows it.
#[derive(Clone, Debug)]
pub struct NaiveThread {
    /// Its identity.
    pub id: ThreadId,
    /// Whether it was made to be long.
    pub long: bool,
    /// Every moment it had; the first has version 1.
    pub log: Vec<Moment>,
    /// Who may see it: no moment of its own, and no move along the log changes it.
    pub marks: Marks,
}

/// Who may see a thread: the visibility, whether it is private, whether support may see it.
pub type Marks = (String, bool, bool);

/// One moment of a thread.
#[derive(Clone, Debug)]
pub struct Moment {
    /// All of it; dropped once nobody will go back there.
    pub picture: Option<Box<ThreadPicture>>,
    /// The hash of all of it.
    pub digest: Digest,
    /// The active take.
    pub active: TakeId,
    /// All takes.
    pub takes: Vec<TakeId>,
    /// What led here.
    pub event: Event,
    /// The take whose step it is; `None` for the thread's.
    pub owner: Option<TakeId>,
    /// The change of the same chain that it was made on; 0 for the first.
    pub parent: usize,
    /// The changes that it took back, in that order.
    pub taken_back: Vec<usize>,
    /// Where every chain is after it.
    pub chains: BTreeMap<Option<TakeId>, At>,
    /// What it is undone with.
    pub turn: u64,
    /// When.
    pub time: i64,
}

/// Where a chain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The newest change that is done.
    pub position: usize,
    /// Where redo leads.
    pub tip: usize,
    /// The newest change that was ever made.
    pub changed: usize,
    /// The moment that brought it here.
    pub since: usize,
}

/// What led to a moment, as far as later rules ask.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A change.
    Change,
    /// A change of a draft.
    Typed(TakeId, Actor),
    /// The thread was put away.
    PutAway,
    /// The thread was taken back into use.
    TakenBack,
    /// A take became a thread.
    Promoted(ThreadId),
    /// A take was made.
    Made,
    /// All takes were emptied.
    Reset,
    /// Undo, redo, jump, or a name for the moment: nothing of its own.
    Moved,
}

impl NaiveThread {
    /// A thread with its first moment.
    pub fn new(id: ThreadId, picture: ThreadPicture, turn: u64, time: i64) -> Self {
        let digest = picture.digest();
        let marks = picture.marks();
        let at = At { position: 1, tip: 1, changed: 1, since: 1 };
        let first = Moment {
            active: picture.active,
            takes: picture.take_ids(),
            picture: Some(Box::new(picture)),
            digest,
            event: Event::Change,
            owner: None,
            parent: 0,
            taken_back: Vec::new(),
            chains: BTreeMap::from([(None, at)]),
            turn,
            time,
        };
        Self { id, long: false, log: vec![first], marks }
    }

    /// The last moments, a line each, for someone who looks into a violation: the take, the turn, the parent, and where
    /// chains are.
    pub fn outline(&self) -> String {
        const MOMENTS: usize = 60;
        let name = |take: &TakeId| take.to_string().chars().rev().take(4).collect::<String>();
        let mut text = String::from("\n");
        for (at, moment) in self.log.iter().enumerate().skip(self.log.len().saturating_sub(MOMENTS)) {
            let owner = moment.owner.as_ref().map_or("thread".to_owned(), name);
            let (version, active) = (at + 1, name(&moment.active));
            let Moment { event, turn, parent, .. } = moment;
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

    /// How many moments it had.
    pub fn version(&self) -> usize {
        self.log.len()
    }

    /// The last moment.
    pub fn head(&self) -> &Moment {
        self.log.last().expect("a thread has a first moment")
    }

    /// The present picture.
    pub fn picture(&self) -> &ThreadPicture {
        self.head().picture.as_deref().expect("the last picture is never dropped")
    }

    /// Whether every picture is kept.
    pub fn is_whole(&self) -> bool {
        self.log.iter().all(|moment| moment.picture.is_some())
    }

    /// The moment with that version.
    pub fn at(&self, version: usize) -> &Moment {
        &self.log[version - 1]
    }

    /// Where a chain was at a version.
    pub fn chain(&self, version: usize, owner: Option<TakeId>) -> At {
        self.at(version).chains.get(&owner).copied().unwrap_or_default()
    }

    /// Adds a change.
    pub fn change(
        &mut self,
        picture: ThreadPicture,
        event: Event,
        owner: Option<TakeId>,
        (turn, now): (u64, i64),
        mutant: Option<Mutant>,
    ) {
        let version = self.version() + 1;
        let head = self.head();
        let before = self.chain(self.version(), owner);
        let survives = mutant == Some(Mutant::RedoSurvivesAChange) && before.tip != before.position;
        let tip = if survives { before.tip } else { version };
        let mut chains = head.chains.clone();
        chains.insert(owner, At { position: version, tip, changed: version, since: version });
        self.log.push(Moment {
            digest: picture.digest(),
            active: picture.active,
            takes: picture.take_ids(),
            picture: Some(Box::new(picture)),
            event,
            owner,
            parent: before.position,
            taken_back: Vec::new(),
            chains,
            turn,
            time: now.max(head.time),
        });
    }

    /// Adds a name for the present moment.
    pub fn note(&mut self, turn: u64, now: i64) {
        let head = self.head().clone();
        let time = now.max(head.time);
        self.log.push(Moment {
            event: Event::Moved,
            owner: None,
            taken_back: Vec::new(),
            turn,
            time,
            ..head
        });
    }

    /// Adds a move.
    pub fn go(&mut self, way: Way, turn: u64, now: i64) {
        let (version, head) = (self.version() + 1, self.head());
        let mut chains = head.chains.clone();
        for (owner, at) in way.chains {
            let before = chains.get(&owner).copied().unwrap_or_default();
            if (at.position, at.tip) != (before.position, before.tip) {
                chains.insert(owner, At { since: version, ..at });
            }
        }
        let time = now.max(head.time);
        self.log.push(Moment {
            digest: way.picture.digest(),
            active: way.picture.active,
            takes: way.picture.take_ids(),
            picture: Some(Box::new(way.picture)),
            event: Event::Moved,
            owner: None,
            parent: 0,
            taken_back: way.taken_back,
            chains,
            turn,
            time,
        });
    }

    /// A change and all of its chain that it was made on, back to the first.
    pub fn path(&self, from: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut version = from;
        while version != 0 {
            path.push(version);
            version = self.at(version).parent;
        }
        path
    }

    /// Whether a change is done.
    pub fn is_done(&self, version: usize) -> bool {
        let at = self.chain(self.version(), self.at(version).owner);
        self.path(at.position).contains(&version)
    }

    /// Whether a change is undone, and lies on the way to where redo leads.
    pub fn is_ahead(&self, version: usize) -> bool {
        let owner = self.at(version).owner;
        let beside = if owner.is_some() { None } else { Some(self.picture().active) };
        let (at, beside) = (self.chain(self.version(), owner), self.chain(self.version(), beside));
        let cleared = beside.changed > at.since;
        !cleared && self.path(at.tip).contains(&version) && !self.path(at.position).contains(&version)
    }

    /// Whether the thread is as it was made, but for having been put away.
    pub fn untouched(&self) -> bool {
        ThreadPicture { deleted: None, ..self.picture().clone() }.digest() == self.log[0].digest
    }
}
