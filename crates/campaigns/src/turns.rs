//! Many turns in one conversation and folder, under failing servers and concurrent changes.
//!
//! ```text
//!   rng ───► a step: a turn · a retry · an undo, redo, jump · an edit, a deletion · a compression · a switch · …
//!     │                │
//!     │                └─► the agent ──► a local server ──► an answer with tools, or one of ten failures
//!     │                                        └─ each request is checked against the rules of its wire
//!     └──────► after every step
//!                takes        as many as counted: no fork without its turn
//!                files        match the last operation byte for byte; a snapshot finds no changes
//!                tools        successful changes are on disk, others are not
//!                projection   every take, on all four wires, breaks no rule
//!                leftovers    no record of a turn, and no turn is marked as running
//! ```
//!
//! The controls inject faults that a driver could have: see [`DriverFault`].

mod check;
mod kill;
mod scripted_model;
mod summaries;
mod tools;
mod walk;
mod world;

pub use kill::{TurnKillSummary, kill, kill_control, leftover_control};
pub use walk::{TurnsSummary, walk};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct TurnsPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of turns.
    pub turns: u64,
    /// Percentage of failing answers.
    pub chaos: u64,
    /// The injected fault.
    pub mistake: Option<DriverFault>,
}

/// An injected fault, which must be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFault {
    /// A tool result is published without its files.
    ResultWithoutFiles,
    /// A retry that cannot start leaves its fork.
    OrphanFork,
    /// A call is sent without its result.
    CallWithoutResult,
    /// A stop is reported but has no effect, while a tool prints continuously.
    StopWithoutEffect,
    /// A stop is reported but has no effect, during a summary.
    SummaryNotStopped,
    /// A concurrent change during a summary is lost.
    ChangeLost,
}

impl DriverFault {
    /// Every variant.
    pub const ALL: [Self; 6] = [
        Self::ResultWithoutFiles,
        Self::OrphanFork,
        Self::CallWithoutResult,
        Self::StopWithoutEffect,
        Self::SummaryNotStopped,
        Self::ChangeLost,
    ];
}

/// Injects each fault; all must be caught.
pub fn controls(seed: u64) -> Result<Vec<crate::violation::Violation>, crate::violation::BoxError> {
    let control = |mistake| {
        let plan = TurnsPlan { seed, turns: 60, chaos: 0, mistake: Some(mistake) };
        crate::violation::caught(&format!("{mistake:?}"), walk(plan))
    };
    DriverFault::ALL.into_iter().map(control).collect()
}
