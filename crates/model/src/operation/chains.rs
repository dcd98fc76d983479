//! Which chain of steps an operation belongs to.

use minicbor::{Decode, Encode};

use super::Version;
use crate::id::TakeId;

/// The chain of an operation, and where the chains of its thread are after it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Chains {
    /// The take whose step this is; `None` for a step of the thread. For an undo, a redo or a jump, the take that it
    /// leads to in the folder where it was made.
    #[n(0)]
    pub take: Option<TakeId>,
    /// Where the thread's own chain is.
    #[n(1)]
    pub thread: ChainPosition,
    /// Where the chains are of the takes that an undo, a redo or a jump moved, ordered by take.
    #[n(2)]
    pub takes: Vec<TakePosition>,
    /// The newest earlier operation that is not a change of the same chain; 0 if there is none. Looking for the last
    /// step of a take passes over whole runs of another's.
    #[n(3)]
    pub other: Version,
    /// The order in which a move took back the steps of several chains: redo goes the other way. Missing for one chain.
    #[n(4)]
    pub order: Option<Vec<ChainRun>>,
}

/// Steps of one chain that a move took back in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ChainRun {
    /// The take; `None` for the thread's chain.
    #[n(0)]
    pub take: Option<TakeId>,
    /// How many steps.
    #[n(1)]
    pub steps: u64,
}

/// What a move does to the chains of a thread.
#[derive(Clone, Debug)]
pub struct ChainMoves {
    /// Where the thread's own chain is then.
    pub thread: ChainPosition,
    /// Where the chains of takes are then that it moved, ordered by take.
    pub takes: Vec<TakePosition>,
    /// The order in which it took back steps of several chains.
    pub order: Option<Vec<ChainRun>>,
}

/// Where a chain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ChainPosition {
    /// The newest change that is done; 0 before the first.
    #[n(0)]
    pub position: Version,
    /// The change that redo leads to.
    #[n(1)]
    pub tip: Version,
    /// The newest change that was ever made in the chain.
    #[n(2)]
    pub changed: Version,
    /// The operation that brought the chain here.
    #[n(3)]
    pub since: Version,
    /// The move that took back the step that redo makes next; 0 if nothing is ahead.
    #[n(4)]
    pub undone: Version,
}

/// Where the chain of a take is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TakePosition {
    /// Which take.
    #[n(0)]
    pub take: TakeId,
    /// Where its chain is.
    #[n(1)]
    pub at: ChainPosition,
}

impl ChainPosition {
    /// Just after a change.
    pub fn at(version: Version) -> Self {
        Self { position: version, tip: version, changed: version, since: version, undone: 0 }
    }
}
