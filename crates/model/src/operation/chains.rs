//! The chain that an operation belongs to.

use minicbor::{Decode, Encode};

use super::Version;
use crate::id::TakeId;

/// The chain of an operation, and the positions of the chains of its thread after it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Chains {
    /// The take that the step belongs to; `None` for a step of the thread. For an undo, a redo or a jump: the
    /// take that becomes current in the folder where it was made.
    #[n(0)]
    pub take: Option<TakeId>,
    /// Position of the thread's own chain.
    #[n(1)]
    pub thread: ChainPosition,
    /// Positions of the take chains that an undo, a redo or a jump moved, ordered by take.
    #[n(2)]
    pub takes: Vec<TakePosition>,
    /// The newest earlier operation that is not a change of the same chain; 0 if there is none. The search
    /// for the last step of a take uses it to skip runs of other chains.
    #[n(3)]
    pub other: Version,
    /// The order in which a move undid steps of several chains; redo reverses it. `None` for a single chain.
    #[n(4)]
    pub order: Option<Vec<ChainRun>>,
}

/// Consecutive steps of one chain that a move undid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ChainRun {
    /// The take; `None` for the thread's chain.
    #[n(0)]
    pub take: Option<TakeId>,
    /// Number of steps.
    #[n(1)]
    pub steps: u64,
}

/// The effect of a move on the chains of a thread.
#[derive(Clone, Debug)]
pub struct ChainMoves {
    /// The resulting position of the thread's own chain.
    pub thread: ChainPosition,
    /// The resulting positions of the take chains that it moved, ordered by take.
    pub takes: Vec<TakePosition>,
    /// The order in which it undid steps of several chains.
    pub order: Option<Vec<ChainRun>>,
}

/// Position of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ChainPosition {
    /// The newest change that is not undone; 0 before the first.
    #[n(0)]
    pub position: Version,
    /// The change that redo leads to.
    #[n(1)]
    pub tip: Version,
    /// The newest change ever made in the chain.
    #[n(2)]
    pub changed: Version,
    /// The operation that moved the chain here.
    #[n(3)]
    pub since: Version,
    /// The move that undid the step that redo makes next; 0 if there is nothing to redo.
    #[n(4)]
    pub undone: Version,
}

/// Position of the chain of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TakePosition {
    /// The take.
    #[n(0)]
    pub take: TakeId,
    /// Position of its chain.
    #[n(1)]
    pub at: ChainPosition,
}

impl ChainPosition {
    /// The position just after a change.
    pub fn at(version: Version) -> Self {
        Self { position: version, tip: version, changed: version, since: version, undone: 0 }
    }
}
