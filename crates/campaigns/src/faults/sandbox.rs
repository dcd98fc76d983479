//! Runs commands in a sandbox: a store, a project folder and the program, with or without a fault.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::script::INNER;
use crate::scratch::ScratchDir;
use crate::shim::{Faults, Report, Shim};
use crate::violation::BoxError;

/// A sandbox for commands.
pub struct Sandbox {
    scratch: ScratchDir,
    program: PathBuf,
    shim: Shim,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// Its output.
    pub output: Output,
    /// The report of the fault library.
    pub report: Report,
}

impl Run {
    /// Whether the command reported success.
    pub fn acknowledged(&self) -> bool {
        self.output.status.success()
    }

    /// Whether it was killed.
    pub fn killed(&self) -> bool {
        self.output.status.signal() == Some(9)
    }

    /// Its error message.
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

impl Sandbox {
    /// Creates a sandbox for this program.
    pub fn new(program: &Path) -> Result<Self, BoxError> {
        let scratch = ScratchDir::new()?;
        fs::create_dir_all(scratch.path().join("project").join(INNER))?;
        fs::create_dir(scratch.path().join("home"))?;
        Ok(Self { scratch, program: program.to_owned(), shim: Shim::build()? })
    }

    /// The project's folder.
    pub fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// The folder of the store.
    pub fn store(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// Runs a command with these faults.
    pub fn run(&self, arguments: &[&str], faults: impl FnOnce(Faults) -> Faults) -> Result<Run, BoxError> {
        let counted = self.scratch.path().join("count");
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--json")
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("RETAKE_HOME", self.store())
            .env("RETAKE_CONFIG", self.scratch.path().join("config.toml"))
            .stdin(Stdio::null());
        let faults = faults(Faults::under(self.store()).counted_in(&counted));
        faults.attach(&self.shim, &mut command);
        let output = command.output()?;
        let report = Report::read(&counted)?;
        if report.untracked > 0 {
            return Err(format!("the shim lost track of {} calls of {arguments:?}", report.untracked).into());
        }
        Ok(Run { output, report })
    }

    /// Saves a copy of the store.
    pub fn keep(&self) -> Result<(), BoxError> {
        Ok(copy(&self.store(), &self.scratch.path().join("kept"))?)
    }

    /// Restores the saved copy.
    pub fn restore(&self) -> Result<(), BoxError> {
        Ok(copy(&self.scratch.path().join("kept"), &self.store())?)
    }
}

/// Makes a folder an exact copy of another, which contains only files and folders.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir(to)?;
    for found in fs::read_dir(from)? {
        let found = found?;
        let target = to.join(found.file_name());
        if found.file_type()?.is_dir() {
            copy(&found.path(), &target)?;
        } else {
            fs::copy(found.path(), target)?;
        }
    }
    Ok(())
}
