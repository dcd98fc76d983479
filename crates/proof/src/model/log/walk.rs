//! Undo, redo and jump in one take, step by step.

use std::collections::BTreeMap;

use retake_model::id::TakeId;
use retake_timeline::Unit;

use super::super::mutant::Mutant;
use super::super::naive::Refused;
use super::super::picture::ThreadPicture;
use super::carry::carry;
use super::{At, Event, NaiveThread};

/// Someone who goes along the log: what is seen, and what was passed over.
pub struct Walk<'thread> {
    thread: &'thread NaiveThread,
    take: TakeId,
    worktree: bool,
    chains: BTreeMap<Option<TakeId>, At>,
    passed: Vec<(usize, bool)>,
    began: TakeId,
    mutant: Option<Mutant>,
}

/// Where a walk led.
#[derive(Clone, Debug)]
pub struct Way {
    /// The picture there.
    pub picture: ThreadPicture,
    /// Where chains are.
    pub chains: BTreeMap<Option<TakeId>, At>,
    /// Whether anything was passed over.
    pub moved: bool,
}

impl<'thread> Walk<'thread> {
    /// Starts at the present, in a take that has a folder of its own, or in the active one.
    pub fn new(thread: &'thread NaiveThread, worktree: Option<TakeId>, mutant: Option<Mutant>) -> Self {
        let take = worktree.unwrap_or(thread.picture().active);
        let chains = thread.head().chains.clone();
        Self { thread, take, worktree: worktree.is_some(), chains, passed: Vec::new(), began: take, mutant }
    }

    fn chain(&self, owner: Option<TakeId>) -> At {
        self.chains.get(&owner).copied().unwrap_or_default()
    }

    /// The newest change that is done here and can be undone from here.
    pub fn position(&self) -> usize {
        let (take, thread) = (self.chain(Some(self.take)).position, self.chain(None).position);
        if thread == 1 || !self.is_blocked(thread) {
            return take.max(thread);
        }
        match self.passed.last() {
            _ if take != 0 => take,
            Some((version, true)) => version - 1,
            _ => thread,
        }
    }

    /// How many changes lie ahead.
    pub fn ahead(&self) -> usize {
        let count = |at: At| self.thread.path(at.tip).len() - self.thread.path(at.position).len();
        count(self.chain(Some(self.take))) + count(self.chain(None))
    }

    fn active(&self, version: usize) -> TakeId {
        self.thread.at(version).picture.as_ref().expect("a thread that is worked on is kept whole").active
    }

    fn is_blocked(&self, version: usize) -> bool {
        version == 1 || (self.worktree && self.active(version - 1) != self.active(version))
    }

    /// The changes that could be taken back, the newest first.
    fn back(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let take = self.chain(Some(self.take)).position;
        if self.mutant == Some(Mutant::UndoReachesOtherTakes) {
            let all = self.chains.iter().filter(|(owner, _)| owner.is_some());
            found.extend(all.map(|(_, at)| at.position).filter(|version| *version != 0));
        } else if take != 0 {
            found.push(take);
        }
        let thread = self.chain(None).position;
        if !self.is_blocked(thread) {
            found.push(thread);
        }
        found.sort_unstable();
        found.reverse();
        found
    }

    /// The changes that could be made again, the oldest first.
    fn forward(&self) -> Vec<usize> {
        let (take, thread) = (self.chain(Some(self.take)), self.chain(None));
        let mut found = Vec::new();
        for (at, beside) in [(take, thread), (thread, take)] {
            let path = self.thread.path(at.tip);
            let next = path
                .into_iter()
                .rev()
                .find(|version| *version > at.position && self.thread.at(*version).parent == at.position);
            let Some(next) = next.filter(|_| at.tip != at.position && beside.changed <= at.since) else {
                continue;
            };
            let of_thread = self.thread.at(next).owner.is_none();
            if !(of_thread && self.is_blocked(next)) {
                found.push(next);
            }
        }
        found.sort_unstable();
        found
    }

    fn pass(&mut self, version: usize, back: bool) {
        let moment = self.thread.at(version);
        let to = if back { moment.parent } else { version };
        self.chains.entry(moment.owner).or_default().position = to;
        self.passed.push((version, back));
        if moment.owner.is_none() && !self.worktree {
            let (before, after) = (self.active(version - 1), self.active(version));
            if before != after {
                self.take = if back { before } else { after };
            }
        }
    }

    /// Goes one step; says whether there was one.
    pub fn step(&mut self, unit: Unit, back: bool) -> bool {
        let next = |walk: &Self| if back { walk.back() } else { walk.forward() };
        let Some(first) = next(self).first().copied() else { return false };
        self.pass(first, back);
        let turn = self.thread.at(first).turn;
        let whole = unit == Unit::Turn && !(back && self.mutant == Some(Mutant::UndoForgetsTurns));
        if !whole {
            return true;
        }
        loop {
            let same = next(self).into_iter().find(|version| self.thread.at(*version).turn == turn);
            let Some(version) = same else { break };
            self.pass(version, back);
        }
        true
    }

    /// Goes to where all that is seen was at a version.
    pub fn jump(&mut self, version: usize) -> Result<(), Refused> {
        if version == 0 || version > self.thread.version() {
            return Err(Refused::NoSuchVersion);
        }
        let (now, target) = (
            self.thread.path(self.chain(None).position),
            self.thread.path(self.thread.chain(version, None).position),
        );
        let mut back: Vec<usize> = now.iter().copied().filter(|step| !target.contains(step)).collect();
        let mut forward: Vec<usize> = target.iter().copied().filter(|step| !now.contains(step)).collect();
        forward.reverse();
        if self.worktree && back.iter().chain(&forward).any(|step| self.is_blocked(*step)) {
            (back, forward) = (Vec::new(), Vec::new());
        }
        for step in back {
            while self.chain(Some(self.take)).position > step {
                self.pass(self.chain(Some(self.take)).position, true);
            }
            self.pass(step, true);
        }
        for step in forward {
            self.take_to(step - 1);
            self.pass(step, false);
        }
        self.take_to(version);
        for at in self.chains.values_mut() {
            let ahead = at.position == 0 || self.thread.path(at.tip).contains(&at.position);
            if !ahead || self.mutant == Some(Mutant::JumpForgetsWhatLiesAhead) {
                at.tip = at.position;
            }
        }
        Ok(())
    }

    /// Brings the take to where it was at a version.
    fn take_to(&mut self, version: usize) {
        let owner = Some(self.take);
        let now = self.thread.path(self.chain(owner).position);
        let target = self.thread.path(self.thread.chain(version, owner).position);
        for step in now.iter().filter(|step| !target.contains(step)) {
            self.pass(*step, true);
        }
        for step in target.iter().rev().filter(|step| !now.contains(step)) {
            self.pass(*step, false);
        }
    }

    /// The move that this one takes back, if it leads to just where that one came from.
    fn reverses(&self) -> Option<usize> {
        let now = self.thread.version();
        let since = |owner| self.thread.chain(now, owner).since;
        let last = since(None).max(since(Some(self.began)));
        if last < 2 || self.thread.at(last).event != Event::Moved || self.passed.is_empty() {
            return None;
        }
        let was = |owner| self.thread.chain(last - 1, owner).position;
        let moved_then = |owner| self.thread.chain(last, owner).position != was(owner);
        let moved_now = |owner| self.chain(owner).position != self.thread.chain(now, owner).position;
        let all = self.chains.keys().copied().filter(|owner| moved_then(*owner) || moved_now(*owner));
        (was(None) == self.chain(None).position)
            .then_some(last)
            .filter(|_| all.into_iter().all(|owner| self.chain(owner).position == was(owner)))
    }

    /// The present picture with all that was passed over taken back or made again.
    pub fn end(self) -> Way {
        let mut owned: Vec<TakeId> =
            self.passed.iter().filter_map(|(version, _)| self.thread.at(*version).owner).collect();
        owned.push(self.take);
        let picture = |version: usize| {
            self.thread.at(version).picture.as_deref().expect("a thread that is worked on is kept whole")
        };
        let mut present = self.thread.picture().clone();
        if let Some(last) = self.reverses() {
            present = carry(&present, picture(last), picture(last - 1), &owned);
            return Way { picture: present, moved: true, chains: self.chains };
        }
        for (version, back) in &self.passed {
            let (before, after) = (picture(version - 1), picture(*version));
            let (from, to) = if *back { (after, before) } else { (before, after) };
            present = carry(&present, from, to, &owned);
        }
        // Only chains that were passed over can have moved.
        Way { picture: present, moved: !self.passed.is_empty(), chains: self.chains }
    }
}
