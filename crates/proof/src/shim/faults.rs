//! What shall go wrong, and when.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;

use super::Shim;

/// How a process ends at its fatal call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Killed before the call.
    Kill,
    /// Killed in the middle of it: half of a write reaches the file.
    Torn,
    /// The power goes before the call: whatever was not synced is lost.
    Cut,
    /// The power goes, and half of the last write overtakes all that is lost.
    TornCut,
}

/// The error that a call reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No space left on the device (`ENOSPC`).
    DiskFull,
    /// Input or output error (`EIO`).
    BrokenDisk,
    /// Too many open files (`EMFILE`).
    OutOfHandles,
    /// Quota exceeded (`EDQUOT`).
    OverQuota,
    /// Permission denied (`EACCES`).
    Forbidden,
}

/// How often a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// That many counted calls, one after another.
    Consecutive(NonZeroU64),
    /// This one, and all after it.
    Forever,
}

/// A class of system calls that change files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Writing, truncating, allocating.
    Write,
    /// Asking for durability.
    Sync,
    /// Opening, for reading too.
    Open,
    /// Making, renaming and removing names, and setting attributes.
    Name,
}

/// What shall go wrong in a child process; nothing, at first, but the counting of its calls.
#[derive(Clone, Debug)]
pub struct Faults {
    variables: Vec<(&'static str, OsString)>,
}

impl Faults {
    /// Calls on files in that folder, which must exist, count; no others do.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { variables: vec![("FAULTS_ROOT", root.into().into())] }
    }

    /// Keeps count in that file, for [`Report::read`](super::Report::read).
    #[must_use]
    pub fn counted_in(self, file: impl Into<PathBuf>) -> Self {
        self.with("FAULTS_COUNT_FILE", file.into())
    }

    /// Counts only calls of that class.
    #[must_use]
    pub fn only(self, class: Class) -> Self {
        let name = match class {
            Class::Write => "write",
            Class::Sync => "sync",
            Class::Open => "open",
            Class::Name => "name",
        };
        self.with("FAULTS_ONLY", name)
    }

    /// The process dies at that call; the first is 1.
    #[must_use]
    pub fn die_at(self, call: u64, death: Death) -> Self {
        let this = self.with("FAULTS_KILL_AT", call.to_string());
        match death {
            Death::Kill => this,
            Death::Torn => this.with("FAULTS_TORN", "1"),
            Death::Cut => this.with("FAULTS_CUT", "1"),
            Death::TornCut => this.with("FAULTS_TORN", "1").with("FAULTS_CUT", "1"),
        }
    }

    /// The process stops at that call, and waits for whoever stopped it.
    #[must_use]
    pub fn stop_at(self, call: u64) -> Self {
        self.with("FAULTS_STOP_AT", call.to_string())
    }

    /// The power goes just after the process has ended by itself: what it acknowledged must survive.
    #[must_use]
    pub fn cut_at_exit(self) -> Self {
        self.with("FAULTS_CUT_AT_EXIT", "1")
    }

    /// Syncs report success and do nothing: a control, in which a cut must be seen to lose something.
    #[must_use]
    pub fn lying_syncs(self) -> Self {
        self.with("FAULTS_LIE", "1")
    }

    /// Calls fail, from that one on.
    #[must_use]
    pub fn fail_at(self, call: u64, failure: Failure, times: Times) -> Self {
        let error = match failure {
            Failure::DiskFull => "ENOSPC",
            Failure::BrokenDisk => "EIO",
            Failure::OutOfHandles => "EMFILE",
            Failure::OverQuota => "EDQUOT",
            Failure::Forbidden => "EACCES",
        };
        let count = match times {
            Times::Consecutive(count) => count.to_string(),
            Times::Forever => "forever".to_owned(),
        };
        self.with("FAULTS_ERROR_AT", call.to_string())
            .with("FAULTS_ERRNO", error)
            .with("FAULTS_ERROR_COUNT", count)
    }

    /// That call, if it is a write, writes only half of its bytes and says so.
    #[must_use]
    pub fn short_at(self, call: u64) -> Self {
        self.with("FAULTS_SHORT_AT", call.to_string())
    }

    /// Lets the command run with these faults. Its own children will run without any.
    pub fn attach<'command>(&self, shim: &Shim, command: &'command mut Command) -> &'command mut Command {
        command.env("LD_PRELOAD", shim.library()).envs(self.variables.iter().cloned())
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}
