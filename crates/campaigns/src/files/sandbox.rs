//! Runs commands that move files in a sandbox that can be saved and restored.
//!
//! ```text
//!   scratch/ world/  project/   the files         ◄── faults are injected in all of the world
//!            │       apart/     a worktree
//!            │       home/      the store
//!            kept/              the saved store; folders are saved in memory
//!            count              the report of the fault library
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use retake_model::intent::{FolderIdentity, FolderRecord};
use retake_store::StoreError;
use retake_timeline::{Rules, Timeline};
use retake_workspace::folder::Identity;

use crate::faults::{Run, copy};
use crate::folder::Folder;
use crate::shim::{Faults, Report, Shim};
use crate::violation::BoxError;

use super::script::{INITIAL_FILES, PROJECT, Step, WORKTREE_FOLDER};

/// The folders with files: the project's, and the worktree.
pub type Folders = BTreeMap<&'static str, Folder>;

/// A sandbox for commands.
pub struct Sandbox {
    scratch: PathBuf,
    program: Program,
    use_program: Option<Program>,
    shim: Shim,
    home: StoreLocation,
    kept: Option<Folders>,
}

/// The location of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// Next to the project, on the same disk.
    Beside,
    /// On another disk.
    Elsewhere,
}

/// The program to run instead of `retake`.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Arguments that come first.
    pub first: &'static [&'static str],
}

impl Sandbox {
    /// Creates a sandbox in this folder, with a project, its first files and a thread.
    pub fn new(scratch: &Path, program: Program, home: StoreLocation) -> Result<Self, BoxError> {
        let (scratch, shim) = (scratch.to_owned(), Shim::build()?);
        let this = Self { scratch, program, use_program: None, shim, home, kept: None };
        fs::create_dir_all(this.place(PROJECT))?;
        fs::create_dir_all(this.store())?;
        this.by_hand(INITIAL_FILES)?;
        for arguments in [
            &["thread", "new", "Files"] as &[&str],
            &["entry", "add", "A question."],
            &["entry", "add", "Another."],
        ] {
            this.run_checked(PROJECT, arguments)?;
        }
        Ok(this)
    }

    /// Uses another program for `undo` and `worktree remove`.
    pub fn use_program(&mut self, program: Program) {
        self.use_program = Some(program);
    }

    /// The folder in which faults are injected.
    pub fn world(&self) -> PathBuf {
        self.scratch.join("world")
    }

    /// A folder of the world.
    pub fn place(&self, name: &str) -> PathBuf {
        self.world().join(name)
    }

    /// The folder of the store.
    pub fn store(&self) -> PathBuf {
        match self.home {
            StoreLocation::Beside => self.place("home"),
            StoreLocation::Elsewhere => self.scratch.join("home"),
        }
    }

    /// No faults yet, but calls on store and folders are counted.
    pub fn faults(&self) -> Faults {
        let root = match self.home {
            StoreLocation::Beside => self.world(),
            StoreLocation::Elsewhere => self.scratch.clone(),
        };
        Faults::under(root).counted_in(self.counted())
    }

    /// The fault library.
    pub fn shim(&self) -> &Shim {
        &self.shim
    }

    /// The report of the fault library.
    pub fn counted(&self) -> PathBuf {
        self.scratch.join("count")
    }

    /// Builds a command.
    pub fn command(&self, place: &str, arguments: &[&str]) -> Command {
        let wrong = arguments == ["undo"] || arguments.starts_with(&["worktree", "remove"]);
        let program = self.use_program.as_ref().filter(|_| wrong).unwrap_or(&self.program);
        let (before, after) = split(arguments);
        let mut command = Command::new(&program.path);
        command
            .args(program.first)
            .args(before)
            .arg("--json")
            .args(after)
            .current_dir(self.place(place))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.scratch)
            .env("RETAKE_HOME", self.store())
            .env("RETAKE_CONFIG", self.scratch.join("config.toml"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command with these faults.
    pub fn run(
        &self,
        place: &str,
        arguments: &[&str],
        faults: impl FnOnce(Faults) -> Faults,
    ) -> Result<Run, BoxError> {
        let mut command = self.command(place, arguments);
        faults(self.faults()).attach(&self.shim, &mut command);
        let output = command.output()?;
        let report = Report::read(&self.counted())?;
        if report.untracked > 0 {
            return Err(format!("the shim lost track of {} calls of {arguments:?}", report.untracked).into());
        }
        Ok(Run { output, report })
    }

    /// Runs a command that must succeed.
    pub fn run_checked(&self, place: &str, arguments: &[&str]) -> Result<Run, BoxError> {
        let run = self.run(place, arguments, |faults| faults)?;
        if run.acknowledged() {
            Ok(run)
        } else {
            Err(format!("{arguments:?} failed without a fault: {}", run.complaint()).into())
        }
    }

    /// Changes the project's folder with a shell script.
    pub fn by_hand(&self, line: &str) -> Result<(), BoxError> {
        let status = Command::new("sh").args(["-ec", line]).current_dir(self.place(PROJECT)).status()?;
        if status.success() { Ok(()) } else { Err(format!("by hand, {line:?}: {status}").into()) }
    }

    /// Applies the hand edits before a step.
    pub fn prepare(&self, step: &Step) -> Result<(), BoxError> {
        step.by_hand.map_or(Ok(()), |line| self.by_hand(line))
    }

    /// The current files.
    pub fn folders(&self) -> Result<Folders, BoxError> {
        let read = |name| Ok((name, Folder::read(&self.place(name))?));
        [PROJECT, WORKTREE_FOLDER].into_iter().map(read).collect()
    }

    /// Saves files and store.
    pub fn keep(&mut self) -> Result<(), BoxError> {
        self.kept = Some(self.folders()?);
        Ok(copy(&self.store(), &self.scratch.join("kept"))?)
    }

    /// Restores the saved files and store.
    pub fn restore(&self) -> Result<(), BoxError> {
        let kept = self.kept.as_ref().ok_or("nothing was kept")?;
        for (name, folder) in kept {
            let place = self.place(name);
            if folder.0.is_empty() && *name != PROJECT {
                if place.exists() {
                    fs::remove_dir_all(&place)?;
                }
                continue;
            }
            folder.lay_out(&place)?;
        }
        copy(&self.scratch.join("kept"), &self.store())?;
        self.identify()
    }

    /// Updates the identity of the worktree, which restoring recreated.
    fn identify(&self) -> Result<(), BoxError> {
        let Ok(Identity { device, inode, born }) = Identity::of(&self.place(WORKTREE_FOLDER)) else {
            return Ok(());
        };
        let identity = Some(FolderIdentity { device, inode, born, marked: false });
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        timeline.store().write(move |writing| -> Result<(), StoreError> {
            for record in writing.folders()?.into_iter().filter(|record| record.worktree.is_some()) {
                writing.put_folder(&FolderRecord { identity, ..record })?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Temporary folders that were left next to the project.
    pub fn left_beside(&self) -> Result<Vec<PathBuf>, BoxError> {
        let names = fs::read_dir(self.world())?.map(|entry| Ok(entry?.path()));
        let names: Vec<PathBuf> = names.collect::<Result<_, std::io::Error>>()?;
        let temporary = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".retake-tmp"))
        };
        Ok(names.into_iter().filter(temporary).collect())
    }
}

/// Splits the arguments where options may be inserted.
fn split<'a>(arguments: &'a [&'a str]) -> (&'a [&'a str], &'a [&'a str]) {
    arguments.split_at(arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len()))
}
