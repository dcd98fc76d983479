//! Where a command that moves files is run: project and store in one world, which can be kept and brought back.
//!
//! ```text
//!   ground/  world/  project/   the files         ◄── faults strike in all of the world
//!            │       apart/     a take's own files
//!            │       home/      the store
//!            kept/              the store as it was; the folders are kept in memory
//!            count              what the fault library saw
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
use crate::violation::Trouble;

use super::script::{APART, BEGINNING, PROJECT, Step};

/// The folders with files in them: the project's, and the one apart.
pub type Folders = BTreeMap<&'static str, Folder>;

/// A place to run commands in.
pub struct Laboratory {
    ground: PathBuf,
    program: Program,
    instead: Option<Program>,
    shim: Shim,
    home: Home,
    kept: Option<Folders>,
}

/// Where the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Beside the project, on the same disk.
    Beside,
    /// On another disk.
    Elsewhere,
}

/// What is run instead of `retake`, and before its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// Arguments that come first.
    pub first: &'static [&'static str],
}

impl Laboratory {
    /// A place in that folder, with that program, and with a thread in a project that holds the first files.
    pub fn new(ground: &Path, program: Program, home: Home) -> Result<Self, Trouble> {
        let (ground, shim) = (ground.to_owned(), Shim::build()?);
        let this = Self { ground, program, instead: None, shim, home, kept: None };
        fs::create_dir_all(this.place(PROJECT))?;
        fs::create_dir_all(this.store())?;
        this.by_hand(BEGINNING)?;
        for arguments in [
            &["thread", "new", "Files"] as &[&str],
            &["entry", "add", "A question."],
            &["entry", "add", "Another."],
        ] {
            this.must(PROJECT, arguments)?;
        }
        Ok(this)
    }

    /// From now on, another program is run for `undo` and `take close`.
    pub fn instead(&mut self, program: Program) {
        self.instead = Some(program);
    }

    /// The world that faults strike in.
    pub fn world(&self) -> PathBuf {
        self.ground.join("world")
    }

    /// One of its folders.
    pub fn place(&self, name: &str) -> PathBuf {
        self.world().join(name)
    }

    /// The folder of the store.
    pub fn store(&self) -> PathBuf {
        match self.home {
            Home::Beside => self.place("home"),
            Home::Elsewhere => self.ground.join("home"),
        }
    }

    /// Nothing goes wrong yet, but calls on store and folders are counted.
    pub fn faults(&self) -> Faults {
        let root = match self.home {
            Home::Beside => self.world(),
            Home::Elsewhere => self.ground.clone(),
        };
        Faults::under(root).counted_in(self.counted())
    }

    /// The library that makes the faults.
    pub fn shim(&self) -> &Shim {
        &self.shim
    }

    /// Where calls are counted.
    pub fn counted(&self) -> PathBuf {
        self.ground.join("count")
    }

    /// A command of this world, ready to run.
    pub fn command(&self, place: &str, arguments: &[&str]) -> Command {
        let wrong = arguments == ["undo"] || arguments.starts_with(&["worktree", "remove"]);
        let program = self.instead.as_ref().filter(|_| wrong).unwrap_or(&self.program);
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
            .env("HOME", &self.ground)
            .env("RETAKE_HOME", self.store())
            .env("RETAKE_CONFIG", self.ground.join("config.toml"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command with these faults.
    pub fn run(
        &self,
        place: &str,
        arguments: &[&str],
        faults: impl FnOnce(Faults) -> Faults,
    ) -> Result<Run, Trouble> {
        let mut command = self.command(place, arguments);
        faults(self.faults()).attach(&self.shim, &mut command);
        let output = command.output()?;
        let report = Report::read(&self.counted())?;
        if report.untracked > 0 {
            return Err(format!("the shim lost track of {} calls of {arguments:?}", report.untracked).into());
        }
        Ok(Run { output, report })
    }

    /// Runs a command that must work.
    pub fn must(&self, place: &str, arguments: &[&str]) -> Result<Run, Trouble> {
        let run = self.run(place, arguments, |faults| faults)?;
        if run.acknowledged() {
            Ok(run)
        } else {
            Err(format!("{arguments:?} failed without a fault: {}", run.complaint()).into())
        }
    }

    /// Does something in the project's folder by hand.
    pub fn by_hand(&self, line: &str) -> Result<(), Trouble> {
        let status = Command::new("sh").args(["-ec", line]).current_dir(self.place(PROJECT)).status()?;
        if status.success() { Ok(()) } else { Err(format!("by hand, {line:?}: {status}").into()) }
    }

    /// Does what happens by hand before a step.
    pub fn prepare(&self, step: &Step) -> Result<(), Trouble> {
        step.by_hand.map_or(Ok(()), |line| self.by_hand(line))
    }

    /// The files as they are.
    pub fn folders(&self) -> Result<Folders, Trouble> {
        let read = |name| Ok((name, Folder::read(&self.place(name))?));
        [PROJECT, APART].into_iter().map(read).collect()
    }

    /// Keeps files and store as they are now.
    pub fn keep(&mut self) -> Result<(), Trouble> {
        self.kept = Some(self.folders()?);
        Ok(copy(&self.store(), &self.ground.join("kept"))?)
    }

    /// Brings files and store back to what was kept.
    pub fn restore(&self) -> Result<(), Trouble> {
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
        copy(&self.ground.join("kept"), &self.store())?;
        self.identify()
    }

    /// Lets the store know the folder apart that was laid out anew: it is another folder to the file system.
    fn identify(&self) -> Result<(), Trouble> {
        let Ok(Identity { device, inode, born }) = Identity::of(&self.place(APART)) else { return Ok(()) };
        let identity = Some(FolderIdentity { device, inode, born, marked: false });
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        timeline.store().write(move |writing| -> Result<(), StoreError> {
            for record in writing.folders()?.into_iter().filter(|record| record.apart.is_some()) {
                writing.put_folder(&FolderRecord { identity, ..record })?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Temporary folders that were left beside the project.
    pub fn left_beside(&self) -> Result<Vec<PathBuf>, Trouble> {
        let names = fs::read_dir(self.world())?.map(|entry| Ok(entry?.path()));
        let names: Vec<PathBuf> = names.collect::<Result<_, std::io::Error>>()?;
        let temporary = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".retake-tmp"))
        };
        Ok(names.into_iter().filter(temporary).collect())
    }
}

/// The arguments before and after the point where options of our own may stand.
fn split<'a>(arguments: &'a [&'a str]) -> (&'a [&'a str], &'a [&'a str]) {
    arguments.split_at(arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len()))
}
