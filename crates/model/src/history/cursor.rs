//! Cursor: computes the target of an undo, redo or jump, step by step.
//!
//! A cursor moves two chains: the chain of the take in view, and the thread's. A step of the thread may
//! switch the active take; a cursor that follows the active take then continues with the new one:
//!
//! ```text
//!   thread   1 created A      4 branched B         6 switched to A
//!   take A            2   3                                        7   8
//!   take B                            5
//!
//!   undo from the end:  8  7  6  5  4  3  2        always the newest step in view
//! ```

mod jump;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{LogStep, OperationLog, Unit, next_on, steps_between, take_position, thread_position};
use crate::id::TakeId;
use crate::operation::{ChainMoves, ChainPosition, ChainRun, TakePosition, Version};

/// The take in which a move takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryView {
    /// The take.
    pub take: TakeId,
    /// Whether the take is not the active one, and has a worktree or no folder. The cursor then stays on
    /// this take, and the project's files do not change.
    pub worktree: bool,
    /// All takes of the thread with a worktree.
    pub worktrees: BTreeSet<TakeId>,
}

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteStep {
    /// Undoes a change.
    Back(Version),
    /// Redoes a change.
    Forward(Version),
}

impl RouteStep {
    /// Returns the version of the change.
    pub fn version(self) -> Version {
        let (Self::Back(version) | Self::Forward(version)) = self;
        version
    }
}

/// The current positions of the chains, and the route from their original positions.
#[derive(Clone, Debug)]
pub struct HistoryCursor {
    view: HistoryView,
    head: Version,
    thread: ChainPosition,
    thread_before: ChainPosition,
    takes: BTreeMap<TakeId, ChainPosition>,
    route: Vec<RouteStep>,
    order: Vec<ChainRun>,
}

/// The chain of a candidate.
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

impl HistoryCursor {
    /// Creates a cursor at the positions after the operation `head`.
    pub fn new<L: OperationLog>(log: &L, head: Version, view: HistoryView) -> Result<Self, L::Error> {
        let thread = thread_position(&log.step(head)?, head);
        let (takes, route, order) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { view, head, thread, thread_before: thread, takes, route, order })
    }

    /// Moves to the positions at an older version, without a route. Redo then leads to the thread's current
    /// position and to the change `tip` of the take.
    pub fn starting_at<L: OperationLog>(
        mut self,
        log: &L,
        version: Version,
        tip: Version,
    ) -> Result<Self, L::Error> {
        let now = self.take(log)?;
        self.takes.insert(self.view.take, ChainPosition { position: tip, tip, undone: 0, ..now });
        self.jump(log, version)?;
        self.route.clear();
        Ok(self)
    }

    /// Returns the take in view.
    pub fn view(&self) -> TakeId {
        self.view.take
    }

    /// Whether the take in view is not the active one, so that it moves without the thread's switches.
    pub fn stays_in_take(&self) -> bool {
        self.view.worktree
    }

    /// Returns the newest change that can be undone from here; before a take's first change, the version
    /// directly before it.
    pub fn position<L: OperationLog>(&mut self, log: &L) -> Result<Version, L::Error> {
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

    /// Returns the take in view, the position of its chain, and the position of the thread's chain.
    pub fn place<L: OperationLog>(&mut self, log: &L) -> Result<(TakeId, Version, Version), L::Error> {
        Ok((self.view.take, self.take(log)?.position, self.thread.position))
    }

    /// Returns the undone and redone changes, in order.
    pub fn route(&self) -> &[RouteStep] {
        &self.route
    }

    /// Whether more turns than that are undone between here and the tips.
    pub fn is_deeper_than<L: OperationLog>(&mut self, log: &L, turns: u64) -> Result<bool, L::Error> {
        let mut passed = BTreeSet::new();
        for at in [self.take(log)?, self.thread] {
            let mut version = at.tip;
            while version != at.position && version != 0 {
                let step = log.step(version)?;
                passed.insert(step.turn);
                if passed.len() as u64 > turns {
                    return Ok(true);
                }
                version = step.place.parent;
            }
        }
        Ok(false)
    }

    /// Returns the position of the thread's chain if the next operation makes the move.
    pub fn thread(&self) -> ChainPosition {
        let (now, before) = (self.thread, self.thread_before);
        if (now.position, now.tip) == (before.position, before.tip) {
            return before;
        }
        ChainPosition { since: self.head + 1, ..now }
    }

    /// Returns the chain moves for the next operation.
    pub fn moves<L: OperationLog>(&self, log: &L) -> Result<ChainMoves, L::Error> {
        let order = (self.order.len() > 1).then(|| self.order.clone());
        Ok(ChainMoves { thread: self.thread(), takes: self.takes(log)?, order })
    }

    /// Returns the positions of the takes on the route if the next operation makes the move.
    pub fn takes<L: OperationLog>(&self, log: &L) -> Result<Vec<TakePosition>, L::Error> {
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

    /// Whether the route includes a step of the thread that may have changed any take: a reset, or a step
    /// from before takes had chains.
    pub fn reaches_all_takes<L: OperationLog>(&self, log: &L) -> Result<bool, L::Error> {
        for step in &self.route {
            let step = log.step(step.version())?;
            if step.resets_takes || step.chains.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the operation whose state has the take as it is at this cursor: the newest one in effect
    /// that changed it. Steps of the thread change a take if they create or reset it; in logs from before
    /// takes had chains, every step may.
    pub fn origin<L: OperationLog>(&self, log: &L, take: TakeId) -> Result<Version, L::Error> {
        let position = self.position_of(log, take)?.position;
        let mut version = self.thread.position;
        while version > position {
            let step = log.step(version)?;
            if step.resets_takes || step.created_take == Some(take) || step.chains.is_none() {
                return Ok(version);
            }
            version = step.place.parent;
        }
        Ok(position)
    }

    /// Undoes one unit; returns whether there was one.
    pub fn undo<L: OperationLog>(&mut self, log: &L, unit: Unit) -> Result<bool, L::Error> {
        self.move_by(log, unit, Direction::Back)
    }

    /// Redoes one unit; returns whether there was one.
    pub fn redo<L: OperationLog>(&mut self, log: &L, unit: Unit) -> Result<bool, L::Error> {
        self.move_by(log, unit, Direction::Forward)
    }

    fn move_by<L: OperationLog>(
        &mut self,
        log: &L,
        unit: Unit,
        direction: Direction,
    ) -> Result<bool, L::Error> {
        let Some((first, chain)) = self.candidates(log, direction)?.into_iter().next() else {
            return Ok(false);
        };
        let turn = log.step(first)?.turn;
        let undone = self.undone(log, chain)?;
        self.pass(log, first, chain, direction)?;
        if unit == Unit::Operation {
            return Ok(true);
        }
        loop {
            let candidates = self.candidates(log, direction)?;
            let mut same = None;
            for (at, (version, chain)) in candidates.iter().copied().enumerate() {
                // A redo returns to where the undo started, which may be inside a turn. Another redo goes on.
                let is_same = log.step(version)?.turn == turn
                    && (direction == Direction::Back || self.undone(log, chain)? == undone);
                if is_same
                    && (at == 0 || !self.must_wait(log, (version, chain), candidates[0].0, direction)?)
                {
                    same = Some((version, chain));
                    break;
                }
            }
            let Some((version, chain)) = same else { break };
            self.pass(log, version, chain, direction)?;
        }
        Ok(true)
    }

    /// The move that undid the next step of a chain.
    fn undone<L: OperationLog>(&mut self, log: &L, chain: Chain) -> Result<Version, L::Error> {
        Ok(match chain {
            Chain::Take => self.take(log)?.undone,
            Chain::Thread => self.thread.undone,
        })
    }

    /// Whether a step of a turn must wait although it is next in its chain, because a step of another turn
    /// comes first. A switch waits for all earlier steps in the take that it leaves, which would otherwise
    /// be left behind. Any other step of the thread waits for the steps of its own turn that come before it
    /// in the take:
    ///
    /// ```text
    ///   thread               3 branched, in turn t
    ///   take A    2 t             4 t     5 edited     6 t, resumed
    ///
    ///   undo from the end:  6    5    4 3 2            3 moves with its part of the turn
    /// ```
    fn must_wait<L: OperationLog>(
        &mut self,
        log: &L,
        (version, chain): (Version, Chain),
        first: Version,
        direction: Direction,
    ) -> Result<bool, L::Error> {
        if switches(log, version)? {
            return Ok(true);
        }
        if chain == Chain::Take {
            return Ok(false);
        }
        let (turn, tip) = (log.step(version)?.turn, self.take(log)?.tip);
        let mut of_take = Some(first);
        while let Some(before) = of_take {
            let step = log.step(before)?;
            let (comes_before, next) = match direction {
                Direction::Back => (before > version, Some(step.place.parent).filter(|parent| *parent != 0)),
                Direction::Forward => (before < version, next_on(log, before, tip)?),
            };
            if comes_before && step.turn == turn {
                return Ok(true);
            }
            of_take = next.filter(|_| comes_before);
        }
        Ok(false)
    }

    /// Returns the next change of each chain in view, in the order in which they move.
    fn candidates<L: OperationLog>(
        &mut self,
        log: &L,
        direction: Direction,
    ) -> Result<Vec<(Version, Chain)>, L::Error> {
        let (take, thread) = (self.take(log)?, self.thread);
        let (of_take, of_thread) = match direction {
            Direction::Back => (Some(take.position).filter(|version| *version != 0), Some(thread.position)),
            // A newer change clears redo in its own chain and in the other chain in view.
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
            Direction::Forward => {
                if let [(of_take, Chain::Take), (of_thread, Chain::Thread)] = *found
                    && !self.take_goes_first(log, (take.undone, of_take), (thread.undone, of_thread))?
                {
                    found.reverse();
                }
            }
        }
        Ok(found)
    }

    /// Whether the take's next step was undone after the thread's, and is therefore redone first. Each step
    /// comes with the move that undid it.
    ///
    /// ```text
    ///   thread   4 branched B   5 switched to A                 8 switched to B
    ///   take B                                   6   7                             9
    ///
    ///   undone  9  8  5  7  6  4        redone  4  6  7  5  8  9
    /// ```
    fn take_goes_first<L: OperationLog>(
        &self,
        log: &L,
        (take_undone, of_take): (Version, Version),
        (thread_undone, of_thread): (Version, Version),
    ) -> Result<bool, L::Error> {
        if take_undone != thread_undone {
            return Ok(take_undone > thread_undone);
        }
        let earlier_first = of_take < of_thread;
        let seen = self.view.take;
        if take_undone > self.head {
            let mut runs = self.order.iter().rev();
            let last = runs.find(|run| run.take.is_none_or(|take| take == seen));
            return Ok(last.map_or(earlier_first, |run| run.take.is_some()));
        }
        if take_undone == 0 {
            return Ok(earlier_first);
        }
        let step = log.step(take_undone)?;
        let Some(order) = step.chains.as_ref().and_then(|chains| chains.order.as_ref()) else {
            return Ok(earlier_first);
        };
        // The number of steps from the chain's position after the move up to and including this one.
        let mut take = steps_between(log, take_position(log, take_undone, seen)?.position, of_take)?;
        let mut thread = steps_between(log, thread_position(&step, take_undone).position, of_thread)?;
        for run in order.iter().rev() {
            let left = match run.take {
                None => &mut thread,
                Some(owner) if owner == seen => &mut take,
                Some(_) => continue,
            };
            if *left <= run.steps {
                return Ok(run.take.is_some());
            }
            *left -= run.steps;
        }
        Ok(earlier_first)
    }

    /// Whether a step of the thread cannot move here: it affects another folder or another take's turn,
    /// would remove a take with changes, or is the thread's first step.
    fn is_blocked<L: OperationLog>(
        &self,
        log: &L,
        version: Version,
        direction: Direction,
    ) -> Result<bool, L::Error> {
        let step = log.step(version)?;
        if step.place.parent == 0 {
            return Ok(true);
        }
        if let Some(made) = step.created_take {
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
            return Ok(before != after || step.changes_project_files || is_old);
        }
        if is_old && step.touched_take.is_some_and(|take| self.view.worktrees.contains(&take)) {
            return Ok(true);
        }
        let becomes = if direction == Direction::Back { before } else { after };
        Ok(before != after && self.view.worktrees.contains(&becomes))
    }

    /// Whether a step of the thread, such as a setting, belongs to a turn of another take. It moves only
    /// with that turn, in both directions, so that a redo here repeats exactly what an undo here reverted.
    fn is_in_turn_of_another<L: OperationLog>(
        &self,
        log: &L,
        (version, step): (Version, &LogStep),
        seen: TakeId,
    ) -> Result<bool, L::Error> {
        let next = version + 1;
        if step.chains.is_none() || next > self.head {
            return Ok(false);
        }
        let after = log.step(next)?;
        let is_of_another = after.take().is_some_and(|take| take != seen);
        Ok(is_of_another && !after.is_not_undoable && after.turn == step.turn)
    }

    /// Moves a chain over one change.
    fn pass<L: OperationLog>(
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
        self.record_order((chain == Chain::Take).then_some(self.view.take), direction);
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

    /// Counts an undone step of a chain; a redone step is subtracted again.
    fn record_order(&mut self, take: Option<TakeId>, direction: Direction) {
        let last = match direction {
            Direction::Back => self.order.len().checked_sub(1).filter(|last| self.order[*last].take == take),
            Direction::Forward => self.order.iter().rposition(|run| run.take == take),
        };
        match (direction, last) {
            (Direction::Back, Some(last)) => self.order[last].steps += 1,
            (Direction::Back, None) => self.order.push(ChainRun { take, steps: 1 }),
            (Direction::Forward, Some(last)) if self.order[last].steps == 1 => {
                self.order.remove(last);
            }
            (Direction::Forward, Some(last)) => self.order[last].steps -= 1,
            (Direction::Forward, None) => {}
        }
    }

    /// Returns a chain's position after it moves over a change; `at_version` returns its position at a
    /// version.
    fn moved<E>(
        &self,
        at: ChainPosition,
        beside: ChainPosition,
        position: Version,
        direction: Direction,
        at_version: impl Fn(Version) -> Result<ChainPosition, E>,
    ) -> Result<ChainPosition, E> {
        let now = self.head + 1;
        // Moving the chain does not restore the redo steps that a change in the other chain cleared.
        let tip = if beside.changed > at.since { at.position } else { at.tip };
        let mut undone = if direction == Direction::Back { now } else { at.undone };
        if direction == Direction::Forward && undone != 0 {
            // All steps that this move undid are redone; continue with the move before it.
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

    /// Returns the position of the chain of the take in view.
    fn take<L: OperationLog>(&mut self, log: &L) -> Result<ChainPosition, L::Error> {
        let at = self.position_of(log, self.view.take)?;
        self.takes.insert(self.view.take, at);
        Ok(at)
    }

    fn position_of<L: OperationLog>(&self, log: &L, take: TakeId) -> Result<ChainPosition, L::Error> {
        match self.takes.get(&take) {
            Some(at) => Ok(*at),
            None => take_position(log, self.head, take),
        }
    }
}

/// Whether a step switches the active take.
fn switches<L: OperationLog>(log: &L, version: Version) -> Result<bool, L::Error> {
    Ok(log.active(version - 1)? != log.active(version)?)
}
