//! Turns by the hundred, in one conversation over one folder, while the model's server fails and people interfere.
//!
//! ```text
//!   dice ──► a step: a turn · a retry · an undo, redo, jump · an edit, a deletion · a compression · a switch · …
//!     │                │
//!     │                └─► the agent ──► a server of our own ──► an answer with tools, or one of ten failures
//!     │                                        └─ each request it gets is checked by its wire's rules
//!     └──────► after every step
//!                takes        as many as the plain count says: no fork without its turn
//!                files        what the last operation names is what is there, byte for byte; a look finds nothing
//!                tools        what succeeded is on disk, and what did not is not
//!                projection   every take, on all four wires, breaks no rule
//!                leftovers    no record of a turn, and nothing is said to run
//! ```
//!
//! The controls are mistakes that a driver could make: see [`Mistake`].

mod assistant;
mod check;
mod kill;
mod summaries;
mod tools;
mod walk;
mod world;

pub use kill::{TurnKills, kill, kill_control, leftover_control};
pub use walk::{Walked, walk};

/// How many turns, and how bad the world is.
#[derive(Clone, Copy, Debug)]
pub struct TurnsPlan {
    /// What the dice start from.
    pub seed: u64,
    /// How many turns.
    pub turns: u64,
    /// How many of a hundred answers go wrong.
    pub chaos: u64,
    /// What is done wrong on purpose.
    pub mistake: Option<Mistake>,
}

/// A mistake that must be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The result of a tool is published without the files that it wrote.
    ResultWithoutFiles,
    /// A retry that cannot begin leaves its fork behind.
    OrphanFork,
    /// A call is sent without its result.
    CallWithoutResult,
    /// A stop is reported as sent and has no effect, while a tool prints all the time.
    StopWithoutEffect,
    /// A stop is reported as sent and has no effect, while a summary is written.
    SummaryNotStopped,
    /// What somebody changed while a summary was written is lost.
    ChangeLost,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ResultWithoutFiles,
        Self::OrphanFork,
        Self::CallWithoutResult,
        Self::StopWithoutEffect,
        Self::SummaryNotStopped,
        Self::ChangeLost,
    ];
}

/// Makes each mistake in turn; all must be caught.
pub fn controls(seed: u64) -> Result<Vec<crate::violation::Violation>, crate::violation::Trouble> {
    let control = |mistake| {
        let plan = TurnsPlan { seed, turns: 60, chaos: 0, mistake: Some(mistake) };
        crate::violation::caught(&format!("{mistake:?}"), walk(plan))
    };
    Mistake::ALL.into_iter().map(control).collect()
}
