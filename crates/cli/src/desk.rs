//! Commands that move files: the desk of the project's folder, how files are moved, and the look ahead before they
//! are.

use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use retake_model::id::ThreadId;
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_timeline::{Changed, Command, Desk, FileReport, Halves, Handling};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace};

use crate::context::Context;
use crate::describe::files;
use crate::failure::{Code, Failure};
use crate::ui::style::stderr;

/// Which half moves, and how.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileFlags {
    /// Move the conversation alone; files stay as they are.
    #[arg(long, conflicts_with = "files")]
    conversation: bool,
    /// Move the files alone; the conversation stays as it is.
    #[arg(long)]
    files: bool,
    /// What to do with a file that was changed since in a way that does not merge.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    conflicts: Conflicts,
    #[command(flatten)]
    careful: Careful,
}

/// How careful a command is that moves files.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Careful {
    /// Only say what would happen to which file.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before files move.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// What to do with files that conflict.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Conflicts {
    /// Leave the file as it is.
    #[default]
    Keep,
    /// Write the version that the command brings.
    Take,
    /// Write both versions into the file, between markers.
    Mark,
}

impl FileFlags {
    /// How files are to be moved.
    pub(crate) fn handling(self) -> Handling {
        let halves = match (self.conversation, self.files) {
            (true, _) => Halves::Conversation,
            (_, true) => Halves::Files,
            _ => Halves::Both,
        };
        Handling { halves, on_conflict: self.conflicts.into(), preview: self.careful.dry_run }
    }

    pub(crate) fn careful(self) -> Careful {
        self.careful
    }
}

impl From<Conflicts> for OnConflict {
    fn from(conflicts: Conflicts) -> Self {
        match conflicts {
            Conflicts::Keep => Self::Keep,
            Conflicts::Take => Self::Take,
            Conflicts::Mark => Self::Mark,
        }
    }
}

/// What a person decided after a look ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Go,
    Stop,
}

impl Context {
    /// The timeline together with the folder of the project, or with the folder that a take has for itself.
    pub(crate) fn desk(&self) -> Result<Desk, Failure> {
        let (timeline, options) = (self.timeline()?, self.file_options());
        Ok(match self.apart()? {
            Some(apart) => Desk::of_apart(timeline, apart, &options)?,
            None => Desk::of_project(timeline, self.own_project()?.id, &options)?,
        })
    }

    /// The desk, if moving files is wanted and there may be any to move.
    pub(crate) fn desk_for(&self, thread: ThreadId, handling: Handling) -> Result<Option<Desk>, Failure> {
        let head = self.timeline()?.look()?.head(thread)?.operation;
        let none = handling.halves == Halves::Conversation || head.filed.is_none();
        if none && handling.halves != Halves::Files { Ok(None) } else { self.desk().map(Some) }
    }

    /// Makes a change after which another take may be the active one, its files along with it.
    pub(crate) fn change_takes(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
        flags: FileFlags,
    ) -> Result<Option<Changed>, Failure> {
        let (handling, caller) = (flags.handling(), self.caller(expect)?);
        let desk = match self.desk() {
            Ok(desk) if self.config.files.enabled && handling.halves != Halves::Conversation => desk,
            // A folder that files are not kept of has none to bring along.
            _ => {
                let done = self.change(thread, command, expect)?;
                return Ok(Some(Changed { done: Some(done), files: None }));
            }
        };
        if self.looks_ahead(flags.careful()) {
            let ahead =
                desk.change(thread, command.clone(), caller.clone(), Handling { preview: true, ..handling })?;
            if let Some(files) = &ahead.files
                && self.look_ahead(files)? == Decision::Stop
            {
                return Err(Failure::new(Code::Refused, STOPPED));
            }
        }
        let changed = desk.change(thread, command, caller, handling)?;
        self.warn_of_budget();
        if changed.done.is_none() {
            self.report(&changed, |out, _| match &changed.files {
                Some(report) => files::write_report(out, self, report),
                None => Ok(()),
            })?;
            return Ok(None);
        }
        Ok(Some(changed))
    }

    /// The path below the project's folder that a person means by a path on the command line.
    pub(crate) fn root_path(&self, path: &Path) -> Result<RootPath, Failure> {
        let absolute = std::path::absolute(self.directory().join(path))
            .map_err(|error| Failure::new(Code::Usage, format!("{}: {error}", path.display())))?;
        let normal = normalised(&absolute);
        let roots = self.file_roots()?;
        for (name, root) in &roots {
            if let Ok(below) = normal.strip_prefix(root) {
                let found = TreePath::new(below.as_os_str().as_bytes())
                    .map_err(|error| Failure::new(Code::Usage, format!("{}: {error}", path.display())))?;
                return Ok(RootPath { root: name.clone(), path: found });
            }
        }
        let message = format!("{} is not in the project's folder", path.display());
        Err(Failure::new(Code::Usage, message))
    }

    /// The desk of the project's folder with other further roots than those that are known.
    pub(crate) fn desk_with_roots(&self, others: &[(String, PathBuf)]) -> Result<Desk, Failure> {
        let project = self.own_project()?;
        let workspace = Workspace::open(&path_from_text(&project.path), others, self.file_options())?;
        Ok(Desk::at(self.timeline()?.clone(), project.id, workspace))
    }

    /// The folders that files are kept of, by name, the main one first.
    fn file_roots(&self) -> Result<Vec<(String, PathBuf)>, Failure> {
        let looking = self.timeline()?.look()?;
        if let Some(apart) = self.apart()? {
            return Ok(vec![(String::new(), apart.path.clone())]);
        }
        let project = self.project()?;
        let main = path_from_text(&project.path);
        let others = looking.other_roots(project.id)?;
        Ok(std::iter::once((String::new(), main)).chain(others).collect())
    }

    pub(crate) fn file_options(&self) -> Options {
        let files = &self.config.files;
        Options {
            include: files.include.clone(),
            exclude: files.exclude.clone(),
            secrets: files.secrets.clone(),
            largest_file: files.largest.0,
            ..Options::default()
        }
    }

    /// Whether a person should see what files do before they do it.
    pub(crate) fn looks_ahead(&self, careful: Careful) -> bool {
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        terminal && !careful.dry_run && !careful.yes && !self.general.json && self.config.files.confirm
    }

    /// Shows what would happen to files, and asks whether it should.
    pub(crate) fn look_ahead(&self, report: &FileReport) -> Result<Decision, Failure> {
        if !report.moves_files() {
            return Ok(Decision::Go);
        }
        let mut out = stderr(self.general.color);
        files::write_report(&mut out, self, report)?;
        write!(out, "Go on? [Y/n] ")?;
        out.flush()?;
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        let no = matches!(line.trim().to_lowercase().as_str(), "n" | "no");
        Ok(if read == 0 || no { Decision::Stop } else { Decision::Go })
    }
}

/// The path without `.` and `..`, as the names say; links are not looked at.
fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// Said where a person stopped a move after looking ahead.
pub(crate) const STOPPED: &str = "Nothing was changed.";
