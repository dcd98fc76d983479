//! Where an undo, a redo or a jump leads, step by step.
//!
//! A cursor sees two chains: that of one take, and the thread's. A step of the thread may make another take the active
//! one; a cursor that saw the active take then sees that one:
//!
//! ```text
//!   thread   1 created A      4 branched B         6 switched to A
//!   take A            2   3                                        7   8
//!   take B                            5
//!
//!   undo from the end:  8  7  6  5  4  3  2        each time the newest step of what is seen
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Log, Step, Unit, common, contains, distance, next_on, take_position, thread_position};
use crate::id::TakeId;
use crate::operation::{ChainPosition, TakePosition, Version};

/// The take that a move is made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The take.
    pub take: TakeId,
    /// Whether it is another one than the active take, with a worktree or without a folder: then it stays the one that
    /// is seen, and the project's files are out of reach.
    pub worktree: bool,
    /// All takes of the thread that have a worktree.
    pub worktrees: BTreeSet<TakeId>,
}

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteStep {
    /// A change is taken back.
    Back(Version),
    /// A change is made again.
    Forward(Version),
}

impl RouteStep {
    /// The change.
    pub fn version(self) -> Version {
        let (Self::Back(version) | Self::Forward(version)) = self;
        version
    }
}

/// Where the chains are, and the route that led there from where they were.
#[derive(Clone, Debug)]
pub struct Cursor {
    view: View,
    head: Version,
    thread: ChainPosition,
    thread_before: ChainPosition,
    takes: BTreeMap<TakeId, ChainPosition>,
    route: Vec<RouteStep>,
}

/// Which chain a candidate comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Take,
    Thread,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Forward,
}

impl Cursor {
    /// Where the chains are after the operation with that version.
    pub fn new<L: Log>(log: &L, head: Version, view: View) -> Result<Self, L::Error> {
        let thread = thread_position(&log.step(head)?, head);
        let (takes, route) = (BTreeMap::new(), Vec::new());
        Ok(Self { view, head, thread, thread_before: thread, takes, route })
    }

    /// Starts from where chains were at an older version; redo leads to the present of the thread, and to that change of
    /// the take.
    pub fn starting_at<L: Log>(mut self, log: &L, version: Version, tip: Version) -> Result<Self, L::Error> {
        let thread = thread_position(&log.step(version)?, version);
        self.thread =
            ChainPosition { position: thread.position, tip: self.thread.position, undone: 0, ..self.thread };
        let now = self.take(log)?;
        let then = take_position(log, version, self.view.take)?;
        let at = ChainPosition { position: then.position, tip, undone: 0, ..now };
        self.takes.insert(self.view.take, at);
        Ok(self)
    }

    /// The take that is seen.
    pub fn view(&self) -> TakeId {
        self.view.take
    }

    /// The newest change that is done and can be undone from here; before the first one of a take, the version just
    /// before it.
    pub fn position<L: Log>(&mut self, log: &L) -> Result<Version, L::Error> {
        let (take, thread) = (self.take(log)?.position, self.thread.position);
        let is_first = log.step(thread)?.place.parent == 0;
        if is_first || !self.is_blocked(log, thread, Direction::Back)? {
            return Ok(take.max(thread));
        }
        match self.route.last() {
            _ if take != 0 => Ok(take),
            Some(RouteStep::Back(last)) => Ok(last - 1),
            _ => Ok(thread),
        }
    }

    /// The take that is seen, and where its chain and the thread's are.
    pub fn place<L: Log>(&mut self, log: &L) -> Result<(TakeId, Version, Version), L::Error> {
        Ok((self.view.take, self.take(log)?.position, self.thread.position))
    }

    /// What was taken back and made again, in that order.
    pub fn route(&self) -> &[RouteStep] {
        &self.route
    }

    /// How many changes redo would have to make to lead back to the tips.
    pub fn distance<L: Log>(&mut self, log: &L) -> Result<u64, L::Error> {
        let take = self.take(log)?;
        Ok(distance(log, take)? + distance(log, self.thread)?)
    }

    /// Where the thread's chain is, if the next operation makes the move.
    pub fn thread(&self) -> ChainPosition {
        let (now, before) = (self.thread, self.thread_before);
        if (now.position, now.tip) == (before.position, before.tip) {
            return before;
        }
        ChainPosition { since: self.head + 1, ..now }
    }

    /// Where the chains of takes are that the route touched, if the next operation makes the move.
    pub fn takes<L: Log>(&self, log: &L) -> Result<Vec<TakePosition>, L::Error> {
        let mut moved = Vec::new();
        for (take, at) in &self.takes {
            let before = take_position(log, self.head, *take)?;
            if (before.position, before.tip) != (at.position, at.tip) {
                let at = ChainPosition { since: self.head + 1, ..*at };
                moved.push(TakePosition { take: *take, at });
            }
        }
        Ok(moved)
    }

    /// Whether the route passes a step of the thread that may have changed any take: a reset, or a step from before takes
    /// had chains.
    pub fn reaches_all_takes<L: Log>(&self, log: &L) -> Result<bool, L::Error> {
        for step in &self.route {
            let step = log.step(step.version())?;
            if step.resets || step.chains.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The operation after which a take was as it is here: of those that are done, the newest one that touched it. Steps
    /// of the thread touch a take when they make it, or reset it; in a log from before takes had chains, all may have.
    pub fn origin<L: Log>(&self, log: &L, take: TakeId) -> Result<Version, L::Error> {
        let position = self.position_of(log, take)?.position;
        let mut version = self.thread.position;
        while version > position {
            let step = log.step(version)?;
            if step.resets || step.made == Some(take) || step.chains.is_none() {
                return Ok(version);
            }
            version = step.place.parent;
        }
        Ok(position)
    }

    /// Takes one step back; says whether there was one.
    pub fn undo<L: Log>(&mut self, log: &L, unit: Unit) -> Result<bool, L::Error> {
        self.go(log, unit, Direction::Back)
    }

    /// Makes one step again; says whether there was one.
    pub fn redo<L: Log>(&mut self, log: &L, unit: Unit) -> Result<bool, L::Error> {
        self.go(log, unit, Direction::Forward)
    }

    fn go<L: Log>(&mut self, log: &L, unit: Unit, direction: Direction) -> Result<bool, L::Error> {
        let Some((first, chain)) = self.candidates(log, direction)?.into_iter().next() else {
            return Ok(false);
        };
        let turn = log.step(first)?.turn;
        self.pass(log, first, chain, direction)?;
        if unit == Unit::Operation {
            return Ok(true);
        }
        loop {
            let mut same = None;
            for (version, chain) in self.candidates(log, direction)? {
                if log.step(version)?.turn == turn {
                    same = Some((version, chain));
                    break;
                }
            }
            let Some((version, chain)) = same else { break };
            self.pass(log, version, chain, direction)?;
        }
        Ok(true)
    }

    /// The next change of each chain that is seen, the one that comes first in front.
    fn candidates<L: Log>(
        &mut self,
        log: &L,
        direction: Direction,
    ) -> Result<Vec<(Version, Chain)>, L::Error> {
        let (take, thread) = (self.take(log)?, self.thread);
        let (of_take, of_thread) = match direction {
            Direction::Back => (Some(take.position).filter(|version| *version != 0), Some(thread.position)),
            // A change that was made since clears redo, in its own chain and in the one beside it.
            Direction::Forward => {
                let next = |at: ChainPosition, beside: ChainPosition| {
                    if beside.changed > at.since { Ok(None) } else { next_on(log, at.position, at.tip) }
                };
                (next(take, thread)?, next(thread, take)?)
            }
        };
        let mut found = Vec::new();
        found.extend(of_take.map(|version| (version, Chain::Take)));
        if let Some(version) = of_thread
            && !self.is_blocked(log, version, direction)?
        {
            found.push((version, Chain::Thread));
        }
        match direction {
            Direction::Back => found.sort_by_key(|(version, _)| Reverse(*version)),
            Direction::Forward => found.sort_by_key(|(version, chain)| {
                let at = if *chain == Chain::Take { take } else { thread };
                (Reverse(at.undone), *version)
            }),
        }
        Ok(found)
    }

    /// Whether a step of the thread would reach into another folder or another take's turn, would take away a take that
    /// was worked on, or is the first of all.
    fn is_blocked<L: Log>(&self, log: &L, version: Version, direction: Direction) -> Result<bool, L::Error> {
        let step = log.step(version)?;
        if step.place.parent == 0 {
            return Ok(true);
        }
        if let Some(made) = step.made {
            let worked_on = direction == Direction::Back && self.position_of(log, made)?.position != 0;
            let is_seen = self.view.worktree && made == self.view.take;
            if worked_on || is_seen || self.view.worktrees.contains(&made) {
                return Ok(true);
            }
        }
        let (before, after) = (log.active(version - 1)?, log.active(version)?);
        let switches = before != after && !self.view.worktree && direction == Direction::Forward;
        let seen = if switches { after } else { self.view.take };
        if self.is_in_turn_of_another(log, (version, &step), seen)? {
            return Ok(true);
        }
        // A step from before takes had chains may belong to any take.
        let is_old = step.chains.is_none();
        if self.view.worktree {
            return Ok(before != after || step.in_project || is_old);
        }
        if is_old && step.worked_in.is_some_and(|take| self.view.worktrees.contains(&take)) {
            return Ok(true);
        }
        let becomes = if direction == Direction::Back { before } else { after };
        Ok(before != after && self.view.worktrees.contains(&becomes))
    }

    /// Whether a step of the thread, such as a setting, was made by a turn of another take. It is undone and redone with
    /// that turn alone, in both directions: a redo here must find all that an undo here took back.
    fn is_in_turn_of_another<L: Log>(
        &self,
        log: &L,
        (version, step): (Version, &Step),
        seen: TakeId,
    ) -> Result<bool, L::Error> {
        let next = version + 1;
        if step.chains.is_none() || next > self.head {
            return Ok(false);
        }
        let after = log.step(next)?;
        let is_of_another = after.take().is_some_and(|take| take != seen);
        Ok(is_of_another && !after.moves_only && after.turn == step.turn)
    }

    /// Passes over one change.
    fn pass<L: Log>(
        &mut self,
        log: &L,
        version: Version,
        chain: Chain,
        direction: Direction,
    ) -> Result<(), L::Error> {
        let (to, step) = match direction {
            Direction::Back => (log.step(version)?.place.parent, RouteStep::Back(version)),
            Direction::Forward => (version, RouteStep::Forward(version)),
        };
        self.route.push(step);
        let (take, thread) = (self.take(log)?, self.thread);
        match chain {
            Chain::Take => {
                let seen = self.view.take;
                let at =
                    self.moved(take, thread, to, direction, |before| take_position(log, before, seen))?;
                self.takes.insert(seen, at);
            }
            Chain::Thread => {
                self.thread = self.moved(thread, take, to, direction, |before| {
                    Ok(thread_position(&log.step(before)?, before))
                })?;
                if !self.view.worktree {
                    let (before, after) = (log.active(version - 1)?, log.active(version)?);
                    if before != after {
                        self.view.take = if direction == Direction::Back { before } else { after };
                    }
                }
            }
        }
        Ok(())
    }

    /// Where a chain is when it has passed over a change; `at_version` says where it was.
    fn moved<E>(
        &self,
        at: ChainPosition,
        beside: ChainPosition,
        position: Version,
        direction: Direction,
        at_version: impl Fn(Version) -> Result<ChainPosition, E>,
    ) -> Result<ChainPosition, E> {
        let now = self.head + 1;
        // What a change beside it has cleared does not come back because the chain moves.
        let tip = if beside.changed > at.since { at.position } else { at.tip };
        let mut undone = if direction == Direction::Back { now } else { at.undone };
        if direction == Direction::Forward && undone != 0 {
            // All that this move had taken back is made again: on with what the one before it took back.
            let before = at_version(undone - 1)?;
            if before.position == position {
                undone = before.undone;
            }
        }
        if position == tip {
            undone = 0;
        }
        Ok(ChainPosition { position, tip, since: now, undone, ..at })
    }

    /// Goes to where everything that is seen was just after the operation with that version.
    pub fn jump<L: Log>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        let target = thread_position(&log.step(version)?, version).position;
        let meeting = common(log, self.thread.position, target)?;
        if !self.view.worktree || self.thread_is_free(log, meeting, target)? {
            while self.thread.position != meeting {
                let last = self.thread.position;
                self.take_back_to(log, last)?;
                self.pass(log, last, Chain::Thread, Direction::Back)?;
            }
            while let Some(next) = next_on(log, self.thread.position, target)? {
                self.take_to_version(log, next - 1)?;
                self.pass(log, next, Chain::Thread, Direction::Forward)?;
            }
        }
        self.take_to_version(log, version)?;
        self.keep_tips(log)
    }

    /// Whether no step of the thread on the way reaches into another folder.
    fn thread_is_free<L: Log>(&self, log: &L, meeting: Version, target: Version) -> Result<bool, L::Error> {
        for (from, direction) in [(self.thread.position, Direction::Back), (target, Direction::Forward)] {
            let mut version = from;
            while version != meeting {
                if self.is_blocked(log, version, direction)? {
                    return Ok(false);
                }
                version = log.step(version)?.place.parent;
            }
        }
        Ok(true)
    }

    /// Takes back what the take did after a version.
    fn take_back_to<L: Log>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        loop {
            let last = self.take(log)?.position;
            if last <= version {
                return Ok(());
            }
            self.pass(log, last, Chain::Take, Direction::Back)?;
        }
    }

    /// Brings the chain of the take to where it was just after the operation with that version.
    fn take_to_version<L: Log>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        let target = take_position(log, version, self.view.take)?.position;
        let at = self.take(log)?;
        let meeting = common(log, at.position, target)?;
        while self.take(log)?.position != meeting {
            let last = self.take(log)?.position;
            self.pass(log, last, Chain::Take, Direction::Back)?;
        }
        while let Some(next) = next_on(log, self.take(log)?.position, target)? {
            self.pass(log, next, Chain::Take, Direction::Forward)?;
        }
        Ok(())
    }

    /// Going back along the present branch keeps what lies ahead for redo; elsewhere nothing lies ahead.
    fn keep_tips<L: Log>(&mut self, log: &L) -> Result<(), L::Error> {
        let kept = |at: ChainPosition| -> Result<ChainPosition, L::Error> {
            let ahead = contains(log, at.tip, at.position)?;
            Ok(if ahead { at } else { ChainPosition { tip: at.position, undone: 0, ..at } })
        };
        self.thread = kept(self.thread)?;
        for at in self.takes.values_mut() {
            *at = kept(*at)?;
        }
        Ok(())
    }

    /// Where the chain of the take is that is seen.
    fn take<L: Log>(&mut self, log: &L) -> Result<ChainPosition, L::Error> {
        let at = self.position_of(log, self.view.take)?;
        self.takes.insert(self.view.take, at);
        Ok(at)
    }

    /// Where the chain of a take is.
    fn position_of<L: Log>(&self, log: &L, take: TakeId) -> Result<ChainPosition, L::Error> {
        match self.takes.get(&take) {
            Some(at) => Ok(*at),
            None => take_position(log, self.head, take),
        }
    }
}
