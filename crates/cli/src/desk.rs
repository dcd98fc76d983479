//! Commands that move files: the desk of the project's folder, how files are moved, and the look ahead before they
//! are.

use std::io::{self, IsTerminal, Write};

use clap::{Args, ValueEnum};
use retake_model::replay::OnConflict;
use retake_timeline::{Desk, FileReport, Halves, Handling};
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
    #[arg(short = 'n', long)]
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
        let on_conflict = match self.conflicts {
            Conflicts::Keep => OnConflict::Keep,
            Conflicts::Take => OnConflict::Take,
            Conflicts::Mark => OnConflict::Mark,
        };
        Handling { halves, on_conflict, preview: self.careful.dry_run }
    }

    pub(crate) fn careful(self) -> Careful {
        self.careful
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
        let timeline = self.timeline()?.clone();
        if let Some(apart) = timeline.look()?.apart_folder_at(self.directory())? {
            let workspace = Workspace::open(&apart.path, &[], self.file_options())?;
            return Ok(Desk::at_apart(timeline, &apart, workspace));
        }
        let project = self.own_project()?;
        let path = path_from_text(&project.path)
            .ok_or_else(|| Failure::new(Code::Failed, format!("{} is not a path", project.path)))?;
        let workspace = Workspace::open(&path, &self.config.files.roots(&path), self.file_options())?;
        Ok(Desk::at(timeline, project.id, workspace))
    }

    fn file_options(&self) -> Options {
        let files = &self.config.files;
        Options {
            include: files.include.clone(),
            exclude: files.exclude.clone(),
            secrets: files.secrets.clone(),
            largest_file: files.largest.0,
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

/// Said where a person stopped a move after looking ahead.
pub(crate) const STOPPED: &str = "Nothing was changed.";
