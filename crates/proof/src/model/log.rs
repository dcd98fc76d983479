//! The history of one thread: every state it ever had, copied whole, with a link to the one it came from.
//!
//! Undo, redo and jump are walks along these links, one by one. There are no hops, no depths, nothing that is
//! remembered to make them fast.

use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_timeline::Unit;

use super::mutant::Mutant;
use super::naive::Refused;
use super::picture::{Digest, ThreadPicture};

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
    /// What led here.
    pub event: Event,
    /// The change that it was made on; 0 for the first.
    pub parent: usize,
    /// The change whose picture this is.
    pub position: usize,
    /// Where redo leads.
    pub tip: usize,
    /// What it is undone with.
    pub turn: u64,
    /// When.
    pub time: i64,
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
    /// Undo, redo, jump, or a name for the moment: nothing of its own.
    Moved,
}

impl NaiveThread {
    /// A thread with its first moment.
    pub fn new(id: ThreadId, picture: ThreadPicture, turn: u64, time: i64) -> Self {
        let digest = picture.digest();
        let marks = picture.marks();
        let first = Moment {
            picture: Some(Box::new(picture)),
            digest,
            event: Event::Change,
            parent: 0,
            position: 1,
            tip: 1,
            turn,
            time,
        };
        Self { id, long: false, log: vec![first], marks }
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

    /// The moment with that version.
    pub fn at(&self, version: usize) -> &Moment {
        &self.log[version - 1]
    }

    /// Adds a change.
    pub fn change(
        &mut self,
        picture: ThreadPicture,
        event: Event,
        turn: u64,
        now: i64,
        mutant: Option<Mutant>,
    ) {
        let version = self.version() + 1;
        let head = self.head();
        let tip = if mutant == Some(Mutant::RedoSurvivesAChange) && head.tip != head.position {
            head.tip
        } else {
            version
        };
        self.log.push(Moment {
            digest: picture.digest(),
            picture: Some(Box::new(picture)),
            event,
            parent: head.position,
            position: version,
            tip,
            turn,
            time: now.max(head.time),
        });
    }

    /// Adds a move to the moment of an older change.
    pub fn go(&mut self, position: usize, tip: usize, turn: u64, now: i64) {
        let there = self.at(position).clone();
        let head = self.head();
        let (parent, time) = (head.position, now.max(head.time));
        self.log.push(Moment { event: Event::Moved, parent, position, tip, turn, time, ..there });
    }

    /// The change that an undo leads to.
    pub fn undo(&self, unit: Unit, mutant: Option<Mutant>) -> Option<usize> {
        self.undo_from(self.head().position, unit, mutant)
    }

    /// The change that an undo leads to where that change is the current one.
    pub fn undo_from(&self, position: usize, unit: Unit, mutant: Option<Mutant>) -> Option<usize> {
        let path = self.path(position);
        let whole = unit == Unit::Turn && mutant != Some(Mutant::UndoForgetsTurns);
        let turn = self.at(path[0]).turn;
        path.into_iter().skip(1).find(|version| !whole || self.at(*version).turn != turn)
    }

    /// The change that a redo leads to.
    pub fn redo(&self, unit: Unit) -> Option<usize> {
        self.redo_from(self.head().position, unit)
    }

    /// The change that a redo leads to where that change is the current one.
    pub fn redo_from(&self, position: usize, unit: Unit) -> Option<usize> {
        let head = self.head();
        let mut ahead = self.path(head.tip);
        let Some(here) = ahead.iter().position(|version| *version == position) else {
            // Only a mistake leads here: the tip always lies ahead.
            return Some(head.tip);
        };
        ahead.truncate(here);
        ahead.reverse();
        let first = *ahead.first()?;
        let turn = self.at(first).turn;
        let same = ahead.into_iter().take_while(|version| self.at(*version).turn == turn);
        match unit {
            Unit::Operation => Some(first),
            Unit::Turn => same.last(),
        }
    }

    /// Where a jump leads: the change, and where redo leads from there.
    pub fn jump(&self, version: usize, mutant: Option<Mutant>) -> Result<(usize, usize), Refused> {
        if version == 0 || version > self.version() {
            return Err(Refused::NoSuchVersion);
        }
        let position = self.at(version).position;
        let tip = self.head().tip;
        let ahead = self.path(tip).contains(&position) && mutant != Some(Mutant::JumpForgetsWhatLiesAhead);
        Ok((position, if ahead { tip } else { position }))
    }

    /// A change and all that it was made on, back to the first.
    pub fn path(&self, from: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut version = from;
        while version != 0 {
            path.push(version);
            version = self.at(version).parent;
        }
        path
    }

    /// Whether the thread is as it was made, but for having been put away.
    pub fn untouched(&self) -> bool {
        ThreadPicture { deleted: None, ..self.picture().clone() }.digest() == self.log[0].digest
    }
}
