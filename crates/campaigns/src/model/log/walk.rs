//! Undo, redo and jump in one take, step by step.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use retake_model::id::TakeId;
use retake_timeline::Unit;

use super::super::fault::ModelFault;
use super::super::plain::{PlainTake, PlainThread};
use super::super::reference::ExpectedRefusal;
use super::{ChainPosition, Event, ReferenceThread};

/// A walk along the log: the current view, and the steps passed.
#[derive(Clone)]
pub struct HistoryWalk<'thread> {
    thread: &'thread ReferenceThread,
    take: TakeId,
    worktree: bool,
    chains: BTreeMap<Option<TakeId>, ChainPosition>,
    passed: Vec<(usize, bool)>,
    undone_changes: Vec<usize>,
    seen: BTreeSet<TakeId>,
    fault: Option<ModelFault>,
}

/// The result of a walk.
#[derive(Clone, Debug)]
pub struct WalkResult {
    /// The resulting state.
    pub picture: PlainThread,
    /// The positions of the chains.
    pub chains: BTreeMap<Option<TakeId>, ChainPosition>,
    /// The undone changes, in order.
    pub undone_changes: Vec<usize>,
    /// Whether any step was passed.
    pub moved: bool,
}

impl<'thread> HistoryWalk<'thread> {
    /// Starts at the current version, in the named take if it exists, otherwise in the active one.
    pub fn new(thread: &'thread ReferenceThread, named: Option<TakeId>, fault: Option<ModelFault>) -> Self {
        let active = thread.picture().active;
        let is_there = |take: &TakeId| thread.picture().take(*take).is_some();
        let worktree = named.filter(|take| *take != active && is_there(take));
        let take = worktree.unwrap_or(active);
        let chains = thread.head().chains.clone();
        let (passed, undone_changes, seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { thread, take, worktree: worktree.is_some(), chains, passed, undone_changes, seen, fault }
    }

    fn chain(&self, owner: Option<TakeId>) -> ChainPosition {
        self.chains.get(&owner).copied().unwrap_or_default()
    }

    /// The newest change that can be undone from here.
    pub fn position(&self) -> usize {
        let (take, thread) = (self.chain(Some(self.take)).position, self.chain(None).position);
        if thread == 1 || !self.is_blocked_back(thread) {
            return take.max(thread);
        }
        match self.passed.last() {
            _ if take != 0 => take,
            Some((version, true)) => version - 1,
            _ => thread,
        }
    }

    /// Number of turns that can be redone.
    pub fn turns_ahead(&self) -> usize {
        let chains = [self.chain(Some(self.take)), self.chain(None)];
        let steps = chains.iter().flat_map(|at| {
            let done = self.thread.path(at.position);
            self.thread.path(at.tip).into_iter().filter(move |step| !done.contains(step))
        });
        steps.map(|step| self.thread.at(step).turn).collect::<BTreeSet<_>>().len()
    }

    /// Whether nothing can be redone in any take that an undo of this many steps passes.
    pub fn nothing_ahead(mut self, steps: u64) -> bool {
        let before = self.chains.clone();
        let ends = !self.clone().step(Unit::Operation, false);
        let moved = (0..steps).take_while(|_| self.step(Unit::Turn, true)).count();
        self.seen.insert(self.take);
        let at_its_tip = |take| before.get(&Some(take)).is_none_or(|at| at.position == at.tip);
        ends && moved > 0 && self.seen.into_iter().all(at_its_tip)
    }

    fn active(&self, version: usize) -> TakeId {
        self.thread.at(version).active
    }

    fn is_blocked(&self, version: usize) -> bool {
        version == 1
            || (self.worktree
                && (self.active(version - 1) != self.active(version) || self.is_origin(version)))
    }

    /// Whether a step created the current take, which an undo in that take must not remove.
    fn is_origin(&self, version: usize) -> bool {
        let has = |version: usize| self.thread.at(version).takes.contains(&self.take);
        self.thread.at(version).event == Event::Made && has(version) && !has(version - 1)
    }

    /// A step of the thread that belongs to another take's turn can only be redone in that take.
    fn is_blocked_forward(&self, version: usize) -> bool {
        let (before, after) = (self.active(version.max(2) - 1), self.active(version));
        let seen = if before != after && !self.worktree { after } else { self.take };
        self.is_blocked(version) || self.next_in_turn(version).is_some_and(|take| take != seen)
    }

    /// The take whose step follows a step of the thread in the same turn.
    fn next_in_turn(&self, version: usize) -> Option<TakeId> {
        let next = self.thread.log.get(version)?;
        next.owner.filter(|_| next.event != Event::Moved && next.turn == self.thread.at(version).turn)
    }

    /// An undo elsewhere must not remove a take with changes.
    fn is_blocked_back(&self, version: usize) -> bool {
        let worked_on = |take: &TakeId| {
            !self.thread.at(version - 1).takes.contains(take) && self.chain(Some(*take)).position != 0
        };
        self.is_blocked(version)
            || self.next_in_turn(version).is_some_and(|take| take != self.take)
            || self.thread.at(version).event == Event::Made
                && self.thread.at(version).takes.iter().any(worked_on)
    }

    /// The changes that can be undone, newest first.
    fn back(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let take = self.chain(Some(self.take)).position;
        if self.fault == Some(ModelFault::UndoReachesOtherTakes) {
            let all = self.chains.iter().filter(|(owner, _)| owner.is_some());
            found.extend(all.map(|(_, at)| at.position).filter(|version| *version != 0));
        } else if take != 0 {
            found.push(take);
        }
        let thread = self.chain(None).position;
        if !self.is_blocked_back(thread) {
            found.push(thread);
        }
        found.sort_unstable();
        found.reverse();
        found
    }

    /// The changes that can be redone, oldest first.
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
            if !(of_thread && self.is_blocked_forward(next)) {
                found.push(next);
            }
        }
        found.sort_by_key(|version| {
            let undone = self.undone(*version);
            let order = self.thread.log.get(undone.wrapping_sub(1)).map(|moment| &moment.undone_changes);
            let order = order.filter(|_| self.fault != Some(ModelFault::RedoIgnoresTheOrder));
            let place = order.and_then(|order| order.iter().position(|passed| passed == version));
            (Reverse(undone), Reverse(place), *version)
        });
        found
    }

    /// The version that undid a change.
    fn undone(&self, change: usize) -> usize {
        let owner = self.thread.at(change).owner;
        let done = |at: ChainPosition| self.thread.path(at.position).contains(&change);
        let head = self.thread.version();
        if done(self.thread.chain(head, owner)) {
            return head + 1;
        }
        let was_done = |version: &usize| done(self.thread.chain(*version, owner));
        (1..head).rev().find(was_done).map_or(0, |version| version + 1)
    }

    fn pass(&mut self, version: usize, back: bool) {
        let moment = self.thread.at(version);
        let to = if back { moment.parent } else { version };
        let beside = if moment.owner.is_some() { None } else { Some(self.take) };
        let cleared = self.chain(beside).changed > self.chain(moment.owner).since;
        let at = self.chains.entry(moment.owner).or_default();
        if cleared {
            at.tip = at.position;
        }
        (at.position, at.since) = (to, self.thread.version() + 1);
        self.passed.push((version, back));
        self.undone_changes.retain(|passed| *passed != version);
        if back {
            self.undone_changes.push(version);
        }
        if moment.owner.is_none() && !self.worktree {
            let (before, after) = (self.active(version - 1), self.active(version));
            if before != after {
                self.seen.insert(self.take);
                self.take = if back { before } else { after };
            }
        }
    }

    /// Moves one step; returns whether there was one.
    pub fn step(&mut self, unit: Unit, back: bool) -> bool {
        let next = |walk: &Self| if back { walk.back() } else { walk.forward() };
        let Some(first) = next(self).first().copied() else { return false };
        // A redo ends where the undo began.
        let forgets = self.fault == Some(ModelFault::RedoGoesBeyondTheUndo);
        let start = |walk: &Self, version| if back || forgets { 0 } else { walk.undone(version) };
        let undone = start(self, first);
        self.pass(first, back);
        let turn = self.thread.at(first).turn;
        let whole = unit == Unit::Turn && !(back && self.fault == Some(ModelFault::UndoSplitsTurns));
        loop {
            let found = if whole { next(self) } else { Vec::new() };
            let same = found.iter().enumerate().find(|(at, version)| {
                self.thread.at(**version).turn == turn
                    && start(self, **version) == undone
                    && (*at == 0 || !self.waits(**version, back))
            });
            let Some(version) = same.map(|(_, version)| *version) else { break };
            self.pass(version, back);
        }
        if !back {
            self.pass_restoration();
        }
        true
    }

    /// Whether a step waits behind one of another turn: a switch always does, and a step of the thread does while the
    /// take has earlier steps of the same turn to pass.
    fn waits(&self, version: usize, back: bool) -> bool {
        let moment = self.thread.at(version);
        let take = self.chain(Some(self.take));
        let (done, all) = (self.thread.path(take.position), self.thread.path(take.tip));
        let in_front = |step: &usize| {
            let on_the_way = if back { *step > version } else { *step < version && !done.contains(step) };
            on_the_way && self.thread.at(*step).turn == moment.turn
        };
        let left = if back { &done } else { &all };
        self.active(version - 1) != self.active(version)
            || moment.owner.is_none() && left.iter().any(in_front)
    }

    /// A redo over archiving and restoring a thread does not stop in between.
    fn pass_restoration(&mut self) {
        let archived = |(version, _): &(usize, bool)| self.thread.at(*version).event == Event::Archived;
        let next =
            self.passed.last().filter(|last| archived(last)).and_then(|_| self.forward().first().copied());
        if let Some(next) = next.filter(|next| self.thread.at(*next).event == Event::Restored) {
            self.pass(next, false);
        }
    }

    /// Jumps to the positions of all visible chains at a version.
    pub fn jump(&mut self, version: usize) -> Result<(), ExpectedRefusal> {
        if version == 0 || version > self.thread.version() {
            return Err(ExpectedRefusal::NoSuchVersion);
        }
        if self.worktree && !self.thread.at(version).takes.contains(&self.take) {
            return Err(ExpectedRefusal::NoSuchVersion);
        }
        let (now, target) = (
            self.thread.path(self.chain(None).position),
            self.thread.path(self.thread.chain(version, None).position),
        );
        let mut back: Vec<usize> = now.iter().copied().filter(|step| !target.contains(step)).collect();
        let mut forward: Vec<usize> = target.iter().copied().filter(|step| !now.contains(step)).collect();
        forward.reverse();
        let blocked = back.iter().any(|step| self.is_blocked_back(*step))
            || forward.iter().any(|step| self.is_blocked_forward(*step));
        if self.worktree && blocked {
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
        self.others_to(version);
        for at in self.chains.values_mut() {
            let ahead = at.position == 0 || self.thread.path(at.tip).contains(&at.position);
            if !ahead || self.fault == Some(ModelFault::JumpEndsRedo) {
                at.tip = at.position;
            }
        }
        Ok(())
    }

    /// Moves the takes that were passed to their positions at a version.
    fn others_to(&mut self, version: usize) {
        let (take, passed) = (self.take, self.passed.len());
        let others = if self.fault == Some(ModelFault::JumpIgnoresPassedTakes) {
            BTreeSet::new()
        } else {
            self.seen.clone()
        };
        for seen in others {
            self.take = seen;
            self.take_to(version);
        }
        self.take = take;
        self.passed.truncate(passed);
    }

    /// Moves the take to its position at a version.
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

    /// The resulting state: the thread after its last step, each take after the last step that changed it.
    pub fn end(self) -> WalkResult {
        let steps = self.thread.path(self.chain(None).position);
        let mut picture = self.picture(steps[0]).clone();
        for take in &mut picture.takes {
            let own = self.thread.path(self.chain(Some(take.id)).position);
            let of_thread = steps.iter().filter(|step| self.touches(**step, take.id));
            let newest = *own.iter().chain(of_thread).max().expect("a take was made by some step");
            let found =
                self.picture(newest).take(take.id).expect("the step that touched a take left it there");
            *take = PlainTake { name: take.name.clone(), ..found.clone() };
        }
        WalkResult {
            picture,
            moved: !self.passed.is_empty(),
            chains: self.chains,
            undone_changes: self.undone_changes,
        }
    }

    /// Whether a step of the thread created or cleared a take.
    fn touches(&self, step: usize, take: TakeId) -> bool {
        step == 1
            || self.thread.at(step).event == Event::Reset
            || (!self.thread.at(step - 1).takes.contains(&take) && self.thread.at(step).takes.contains(&take))
    }

    fn picture(&self, version: usize) -> &PlainThread {
        self.thread.at(version).picture.as_deref().expect("a thread that is worked on is kept whole")
    }
}
