//! The command line, and the scale of the measurement.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use retake_model::id::ThreadId;

/// Measure Retake, compared with other programs and with a raw SQLite insert.
#[derive(Debug, Parser)]
#[command(name = "retake-bench")]
pub(crate) struct Options {
    /// Measure small sizes a few times: takes seconds, but the figures mean little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also write all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Compare the figures with an earlier report, written by `--json`.
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Create the stores in a new folder inside this one, which should be on a real disk.
    #[arg(long, value_name = "PATH")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) part: Option<Subcommands>,
}

/// Partial measurements, and the roles of child processes.
#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// Measure the HTTP API under load, compared with a bare handler that does one durable insert.
    Http,
    /// Serve a store.
    #[command(hide = true)]
    Serve {
        /// The store.
        folder: PathBuf,
    },
    /// Serve the baseline.
    #[command(hide = true)]
    ServeFloor {
        /// Folder of the database.
        folder: PathBuf,
    },
    /// Change a thread at intervals, and print when.
    #[command(hide = true)]
    Pulse {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
        /// Number of changes.
        count: usize,
    },
    /// Open a store, read the last page of a thread, and print the duration.
    #[command(hide = true)]
    LastPage {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
    },
    /// Append to a thread for a while, and print the number of changes.
    #[command(hide = true)]
    Writer {
        /// The store.
        folder: PathBuf,
        /// The thread.
        thread: ThreadId,
        /// Duration.
        millis: u64,
    },
}

/// The scale of the measurement.
#[derive(Debug)]
pub(crate) struct Scale {
    /// Sizes of the measured threads, ascending.
    pub(crate) sizes: &'static [u64],
    /// Repetitions of each operation at each size.
    pub(crate) repetitions: usize,
    /// Threads of a list, and takes of a tree.
    pub(crate) listed: u64,
    /// Entries of the forked thread.
    pub(crate) forked: u64,
    /// Number of forks.
    pub(crate) forks: u64,
    /// How long writers write, in milliseconds, and in how many rounds.
    pub(crate) writing: (u64, usize),
}

const FULL_SCALE: Scale = Scale {
    sizes: &[100, 1_000, 10_000, 100_000],
    repetitions: 120,
    listed: 10_000,
    forked: 10_000,
    forks: 1_000,
    writing: (1_000, 5),
};

const QUICK_SCALE: Scale =
    Scale { sizes: &[20, 200], repetitions: 3, listed: 50, forked: 200, forks: 20, writing: (50, 1) };

impl Options {
    pub(crate) fn scale(&self) -> &'static Scale {
        if self.quick { &QUICK_SCALE } else { &FULL_SCALE }
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
