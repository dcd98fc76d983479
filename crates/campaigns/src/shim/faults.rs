//! The faults to inject, and when.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;

use super::Shim;

/// How a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMode {
    /// Before the call.
    Kill,
    /// In the middle of it: half of a write reaches the file.
    Torn,
    /// Power cut before the call: unsynced data is lost.
    Cut,
    /// Power cut in which half of the last write survives.
    TornCut,
}

/// The error that a call reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedError {
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
pub enum Repeat {
    /// This many consecutive calls.
    Consecutive(NonZeroU64),
    /// This call and all later ones.
    Forever,
}

/// A class of system calls that change files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// Writing, truncating, allocating.
    Write,
    /// Syncing.
    Sync,
    /// Opening, for reading too.
    Open,
    /// Creating, renaming and removing names, and setting attributes.
    Name,
}

/// The faults of a child process. Without any, its calls are only counted.
#[derive(Clone, Debug)]
pub struct Faults {
    variables: Vec<(&'static str, OsString)>,
}

impl Faults {
    /// Counts calls on files in this folder, which must exist.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { variables: vec![("FAULTS_ROOT", root.into().into())] }
    }

    /// Writes the counts to this file, for [`Report::read`](super::Report::read).
    #[must_use]
    pub fn counted_in(self, file: impl Into<PathBuf>) -> Self {
        self.with("FAULTS_COUNT_FILE", file.into())
    }

    /// Counts only calls of this class.
    #[must_use]
    pub fn only(self, class: CallClass) -> Self {
        let name = match class {
            CallClass::Write => "write",
            CallClass::Sync => "sync",
            CallClass::Open => "open",
            CallClass::Name => "name",
        };
        self.with("FAULTS_ONLY", name)
    }

    /// Kills the process at this call, from 1.
    #[must_use]
    pub fn die_at(self, call: u64, death: KillMode) -> Self {
        let this = self.with("FAULTS_KILL_AT", call.to_string());
        match death {
            KillMode::Kill => this,
            KillMode::Torn => this.with("FAULTS_TORN", "1"),
            KillMode::Cut => this.with("FAULTS_CUT", "1"),
            KillMode::TornCut => this.with("FAULTS_TORN", "1").with("FAULTS_CUT", "1"),
        }
    }

    /// Stops the process at this call.
    #[must_use]
    pub fn stop_at(self, call: u64) -> Self {
        self.with("FAULTS_STOP_AT", call.to_string())
    }

    /// Cuts the power right after the process exits: acknowledged data must survive.
    #[must_use]
    pub fn cut_at_exit(self) -> Self {
        self.with("FAULTS_CUT_AT_EXIT", "1")
    }

    /// Syncs report success and do nothing: for controls, in which a cut must lose data.
    #[must_use]
    pub fn lying_syncs(self) -> Self {
        self.with("FAULTS_LIE", "1")
    }

    /// Makes calls fail, from this one on.
    #[must_use]
    pub fn fail_at(self, call: u64, failure: InjectedError, times: Repeat) -> Self {
        let error = match failure {
            InjectedError::DiskFull => "ENOSPC",
            InjectedError::BrokenDisk => "EIO",
            InjectedError::OutOfHandles => "EMFILE",
            InjectedError::OverQuota => "EDQUOT",
            InjectedError::Forbidden => "EACCES",
        };
        let count = match times {
            Repeat::Consecutive(count) => count.to_string(),
            Repeat::Forever => "forever".to_owned(),
        };
        self.with("FAULTS_ERROR_AT", call.to_string())
            .with("FAULTS_ERRNO", error)
            .with("FAULTS_ERROR_COUNT", count)
    }

    /// Makes this call, if it is a write, write only half of its bytes.
    #[must_use]
    pub fn short_at(self, call: u64) -> Self {
        self.with("FAULTS_SHORT_AT", call.to_string())
    }

    /// Runs the command with these faults. Its own children run without them.
    pub fn attach<'command>(&self, shim: &Shim, command: &'command mut Command) -> &'command mut Command {
        command.env("LD_PRELOAD", shim.library()).envs(self.variables.iter().cloned())
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}
