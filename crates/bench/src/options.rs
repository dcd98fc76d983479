//! What can be asked on the command line, and how much is measured.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use retake_timeline::model::id::ThreadId;

/// Measures what Retake costs, beside what others do and beside a raw SQLite insert.
#[derive(Debug, Parser)]
#[command(name = "retake-bench")]
pub(crate) struct Options {
    /// Measure small sizes a few times: seconds instead of minutes, and figures that mean little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also write all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the stores in a new folder inside this one. It should be on a real disk.
    #[arg(long, value_name = "PATH")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) part: Option<Part>,
}

/// What is measured on its own, and what this program asks of a second process of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Measure the HTTP API under load, beside a bare handler that does one durable insert.
    Http,
    /// Serve a store.
    #[command(hide = true)]
    Serve {
        /// The store.
        folder: PathBuf,
    },
    /// Serve one insert.
    #[command(hide = true)]
    ServeFloor {
        /// Where the database is made.
        folder: PathBuf,
    },
    /// Change a thread now and then, and say when.
    #[command(hide = true)]
    Pulse {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
        /// How often.
        count: usize,
    },
    /// Open a store, read the last page of a thread, and say what that took.
    #[command(hide = true)]
    LastPage {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
    },
    /// Append to a thread for a while, and say how often.
    #[command(hide = true)]
    Writer {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
        /// For how long.
        millis: u64,
    },
}

/// How much is measured.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Entries of the threads that are measured, ascending.
    pub(crate) sizes: &'static [u64],
    /// How often each operation is measured at each size.
    pub(crate) repetitions: usize,
    /// Threads of a list, and takes of a tree.
    pub(crate) listed: u64,
    /// Entries of the thread that is forked again and again.
    pub(crate) forked: u64,
    /// How often it is forked.
    pub(crate) forks: u64,
    /// How long writers write, in milliseconds, and in how many rounds.
    pub(crate) writing: (u64, usize),
}

const FULL: Extent = Extent {
    sizes: &[100, 1_000, 10_000, 100_000],
    repetitions: 120,
    listed: 10_000,
    forked: 10_000,
    forks: 1_000,
    writing: (1_000, 5),
};

const QUICK: Extent =
    Extent { sizes: &[20, 200], repetitions: 3, listed: 50, forked: 200, forks: 20, writing: (50, 1) };

impl Options {
    pub(crate) fn extent(&self) -> &'static Extent {
        if self.quick { &QUICK } else { &FULL }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Options::command().debug_assert();
    }
}
