//! Undo, redo and jump, worked out from the log alone.
//!
//! Every change is a node of a tree: its parent is the change that was current when it was made. Undo, redo
//! and jump make no node; they move the *position*. The *tip* is where redo leads.
//!
//! ```text
//!   1 ── 2 ── 3 ── 4        after "undo, undo":  position 2, tip 4   (redo goes to 3, then 4)
//!         \
//!          7 ── 8           after a new change:  position 7, tip 7   (redo is gone; 3 and 4 can be jumped to)
//! ```
//!
//! A thread may have a hundred thousand changes, and redo from the far end must cost no more than an undo, so
//! each change also knows one far ancestor (`jump`), placed such that any ancestor is found in O(log n) hops.

use crate::id::TurnId;
use crate::operation::{Actor, Operation, OperationKind, Place, Version};
use crate::time::Timestamp;

/// What the walks below need to know of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it stands.
    pub place: Place,
    /// What it is undone with.
    pub turn: TurnId,
}

/// The log of one thread, read one operation at a time.
pub trait Log {
    /// Why an operation could not be read.
    type Error;
    /// The operation with that version, which must exist.
    fn step(&self, version: Version) -> Result<Step, Self::Error>;
}

/// How much one undo or redo moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// All operations of a turn.
    Turn,
    /// One operation.
    Operation,
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The change whose state becomes current.
    pub position: Version,
    /// Where redo leads from there.
    pub tip: Version,
}

/// Where the first operation of a thread stands.
pub const FIRST: Place = Place { parent: 0, depth: 0, jump: 1, position: 1, tip: 1 };

/// Where a new change stands that is made while `head` is the last operation.
pub fn place_of_change<L: Log>(log: &L, head: &Place, version: Version) -> Result<Place, L::Error> {
    let parent = log.step(head.position)?.place;
    let near = log.step(parent.jump)?.place;
    let far = log.step(near.jump)?.place;
    // Two equal hops in a row are joined into one: the hops grow like the digits of a skew-binary number.
    let jump = if parent.depth.abs_diff(near.depth) == near.depth.abs_diff(far.depth) {
        near.jump
    } else {
        head.position
    };
    Ok(Place { parent: head.position, depth: parent.depth + 1, jump, position: version, tip: version })
}

/// Where an operation stands that only moves (or only names a moment).
pub fn place_of_move(head: &Place, to: Move) -> Place {
    Place { parent: head.position, depth: 0, jump: 0, position: to.position, tip: to.tip }
}

/// Where an undo leads; `None` if there is nothing to undo.
pub fn undo<L: Log>(log: &L, head: &Place, unit: Unit) -> Result<Option<Move>, L::Error> {
    let current = log.step(head.position)?;
    let mut target = current.place.parent;
    while unit == Unit::Turn && target != 0 {
        let step = log.step(target)?;
        if step.turn != current.turn {
            break;
        }
        target = step.place.parent;
    }
    Ok((target != 0).then_some(Move { position: target, tip: head.tip }))
}

/// Where a redo leads; `None` if there is nothing to redo.
pub fn redo<L: Log>(log: &L, head: &Place, unit: Unit) -> Result<Option<Move>, L::Error> {
    if head.position == head.tip {
        return Ok(None);
    }
    let depth = log.step(head.position)?.place.depth;
    let mut target = ancestor_at(log, head.tip, depth + 1)?;
    let mut step = log.step(target)?;
    while unit == Unit::Turn && target != head.tip {
        let next = ancestor_at(log, head.tip, step.place.depth + 1)?;
        let next_step = log.step(next)?;
        if next_step.turn != step.turn {
            break;
        }
        (target, step) = (next, next_step);
    }
    Ok(Some(Move { position: target, tip: head.tip }))
}

/// Where a jump to the moment just after operation `version` leads.
pub fn jump<L: Log>(log: &L, head: &Place, version: Version) -> Result<Move, L::Error> {
    let position = log.step(version)?.place.position;
    // Going back along the present branch keeps what lies ahead for redo.
    let ahead = contains(log, head.tip, position)?;
    Ok(Move { position, tip: if ahead { head.tip } else { position } })
}

/// Whether the state at a position came about by way of that change.
pub fn contains<L: Log>(log: &L, position: Version, change: Version) -> Result<bool, L::Error> {
    let depth = log.step(change)?.place.depth;
    Ok(log.step(position)?.place.depth >= depth && ancestor_at(log, position, depth)? == change)
}

/// How many changes lie between a position and the tip that redo would lead back to.
pub fn distance<L: Log>(log: &L, to: Move) -> Result<u64, L::Error> {
    let tip = log.step(to.tip)?.place.depth;
    let position = log.step(to.position)?.place.depth;
    Ok(tip.saturating_sub(position))
}

/// The last change that the ways to two positions have in common.
pub fn common<L: Log>(log: &L, left: Version, right: Version) -> Result<Version, L::Error> {
    let depth = log.step(left)?.place.depth.min(log.step(right)?.place.depth);
    let (mut left, mut right) = (ancestor_at(log, left, depth)?, ancestor_at(log, right, depth)?);
    while left != right {
        let (here, there) = (log.step(left)?.place, log.step(right)?.place);
        // Changes of one depth have hops of one length, so both sides stay level.
        (left, right) =
            if here.jump == there.jump { (here.parent, there.parent) } else { (here.jump, there.jump) };
    }
    Ok(left)
}

/// Whether a new operation continues the typing that `head` recorded, and so is undone together with it.
pub fn continues_typing(
    head: &Operation,
    kind: &OperationKind,
    actor: &Actor,
    now: Timestamp,
    pause: i64,
) -> bool {
    let (OperationKind::DraftChanged { take: before }, OperationKind::DraftChanged { take: after }) =
        (&head.kind, kind)
    else {
        return false;
    };
    let elapsed = now.millis_since(head.time);
    before == after && head.actor == *actor && (0..pause).contains(&elapsed)
}

/// The ancestor of `version` (or itself) at that depth.
fn ancestor_at<L: Log>(log: &L, version: Version, depth: u64) -> Result<Version, L::Error> {
    let mut version = version;
    let mut place = log.step(version)?.place;
    while place.depth > depth {
        let far = log.step(place.jump)?.place;
        version = if far.depth >= depth { place.jump } else { place.parent };
        place = log.step(version)?.place;
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    struct Steps {
        steps: Vec<Step>,
        reads: Cell<usize>,
    }

    impl Log for Steps {
        type Error = Infallible;

        fn step(&self, version: Version) -> Result<Step, Infallible> {
            self.reads.set(self.reads.get() + 1);
            Ok(self.steps[version as usize - 1])
        }
    }

    impl Steps {
        fn new() -> Self {
            Self { steps: vec![Step { place: FIRST, turn: turn(0) }], reads: Cell::new(0) }
        }

        fn head(&self) -> Place {
            self.steps.last().expect("never empty").place
        }

        fn change(&mut self, number: u8) {
            let Ok(place) = place_of_change(self, &self.head(), self.steps.len() as u64 + 1);
            self.steps.push(Step { place, turn: turn(number) });
        }

        fn go(&mut self, to: Result<Option<Move>, Infallible>) -> Option<Version> {
            let Ok(to) = to;
            let to = to?;
            let place = place_of_move(&self.head(), to);
            self.steps.push(Step { place, turn: turn(255) });
            Some(to.position)
        }

        fn undo(&mut self) -> Option<Version> {
            self.go(undo(self, &self.head(), Unit::Turn))
        }

        fn redo(&mut self) -> Option<Version> {
            self.go(redo(self, &self.head(), Unit::Turn))
        }

        fn jump(&mut self, version: Version) -> Option<Version> {
            self.go(jump(self, &self.head(), version).map(Some))
        }
    }

    fn turn(number: u8) -> TurnId {
        TurnId::from_bytes([number; 16])
    }

    #[test]
    fn turns_move_together() {
        let mut log = Steps::new();
        for number in [1, 2, 2, 2, 3] {
            log.change(number); // versions 2 to 6
        }
        assert_eq!(log.undo(), Some(5));
        assert_eq!(log.undo(), Some(2));
        assert_eq!(log.undo(), Some(1));
        assert_eq!(log.undo(), None);
        assert_eq!(log.redo(), Some(2));
        assert_eq!(log.redo(), Some(5));
        assert_eq!(log.redo(), Some(6));
        assert_eq!(log.redo(), None);
    }

    #[test]
    fn a_change_clears_redo_and_what_was_undone_can_be_jumped_to() {
        let mut log = Steps::new();
        log.change(1); // 2
        log.change(2); // 3
        assert_eq!(log.undo(), Some(2)); // operation 4
        log.change(3); // 5
        assert_eq!(log.redo(), None);
        assert_eq!(log.jump(3), Some(3)); // operation 6
        assert_eq!(log.redo(), None);
        assert_eq!(log.undo(), Some(2));
        assert_eq!(log.redo(), Some(3));
        assert_eq!(log.jump(1), Some(1));
        assert_eq!(log.redo(), Some(2), "a jump back keeps what lies ahead");
        assert_eq!(log.redo(), Some(3));
        assert_eq!(log.jump(5), Some(5));
        assert_eq!(log.redo(), None);
    }

    #[test]
    fn two_branches_have_a_last_change_in_common() {
        let mut log = Steps::new();
        for number in 1..=6 {
            log.change(number); // 2 to 7
        }
        log.jump(4); // 8
        for number in 7..=9 {
            log.change(number); // 9 to 11
        }
        for (left, right, expected) in [(7, 11, 4), (11, 7, 4), (7, 5, 5), (4, 11, 4), (2, 2, 2), (11, 9, 9)]
        {
            assert_eq!(common(&log, left, right), Ok(expected), "{left} and {right}");
        }
    }

    #[test]
    fn a_hundred_thousand_changes_cost_a_few_reads() {
        let mut log = Steps::new();
        for number in 0..100_000u32 {
            log.change((number % 250) as u8 + 1);
        }
        log.jump(1);
        log.reads.set(0);
        assert_eq!(log.redo(), Some(2));
        assert!(log.reads.get() < 200, "{} reads", log.reads.get());
    }
}
