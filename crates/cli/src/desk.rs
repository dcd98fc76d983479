//! Commands that move files: the desk of the project's folder, how files are moved, and the look ahead before they
//! are.

use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use retake_model::id::{TakeId, ThreadId};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_timeline::{
    Caller, Changed, Command, Desk, Executed, FileReport, Halves, Handling, PlanRequest, Preview,
    SharedChanges,
};
use retake_workspace::folder::{path_from_text, path_to_text};
use retake_workspace::snapshot::{Options, Workspace};
use serde::Serialize;

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
    /// Whether changes are undone that several commands or tools made together.
    #[arg(skip)]
    shared: bool,
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
    /// The same; changes that several commands or tools made together are undone if that is asked for.
    pub(crate) fn with_shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// How files are to be moved.
    pub(crate) fn handling(self) -> Handling {
        let halves = match (self.conversation, self.files) {
            (true, _) => Halves::Conversation,
            (_, true) => Halves::Files,
            _ => Halves::Both,
        };
        let shared = if self.shared { SharedChanges::Undo } else { SharedChanges::Refuse };
        Handling { halves, on_conflict: self.conflicts.into(), shared }
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

/// What would be done, where nothing was.
#[derive(Serialize)]
struct PreviewAnswer {
    dry_run: bool,
    would: Preview,
    files: Option<FileReport>,
}

/// What a person decided after a look ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Go,
    Stop,
}

/// What came of a request that may move files.
pub(crate) enum Carried {
    /// It was done.
    Done(Executed),
    /// It was only shown what would be done.
    Previewed(Preview),
}

impl Context {
    /// The folder that a thread's files are in: the one that a take has for itself, if the command was started there, or
    /// the one of the thread's project. The folder that the command was started in only chooses the thread.
    pub(crate) fn desk_of(&self, thread: ThreadId) -> Result<Desk, Failure> {
        let timeline = self.timeline()?;
        let take = match self.worktree_of(thread)? {
            Some(take) => take,
            None => timeline.look()?.state(thread)?.active,
        };
        let desk = Desk::of_take(timeline, thread, take, &self.file_options())?;
        self.name_folder(Some(&path_to_text(desk.path())))?;
        Ok(desk)
    }

    /// The take of that thread whose own folder the command was started in.
    pub(crate) fn worktree_of(&self, thread: ThreadId) -> Result<Option<TakeId>, Failure> {
        Ok(self.apart()?.filter(|apart| apart.thread == thread).map(|apart| apart.take))
    }

    /// Names the folder whose files are meant, if it is another one than where the command was started.
    pub(crate) fn name_folder(&self, folder: Option<&str>) -> Result<(), Failure> {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        match folder {
            Some(folder) if !here.starts_with(path_from_text(folder)) => {
                self.remark(&format!("The files of this thread are in {folder}."))
            }
            _ => Ok(()),
        }
    }

    /// Does what is asked with the files of the thread's own folder, after a preview where there is someone to see it;
    /// or only shows what would be done.
    pub(crate) fn carry_out(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        handling: Handling,
        careful: Careful,
    ) -> Result<Carried, Failure> {
        let take = self.worktree_of(thread)?;
        self.carry_out_in((thread, take), request, caller, handling, careful)
    }

    /// The same in that take, or in the active one if none is named.
    pub(crate) fn carry_out_in(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        caller: Caller,
        handling: Handling,
        careful: Careful,
    ) -> Result<Carried, Failure> {
        let timeline = self.timeline()?;
        let files = self.config.files.enabled.then(|| self.file_options());
        let place = (files.as_ref(), take);
        if careful.dry_run {
            let plan = timeline.plan(thread, request, caller, handling, place)?;
            let preview = plan.into_preview();
            self.name_folder(preview.folder.as_deref())?;
            return Ok(Carried::Previewed(preview));
        }
        let executed = if self.looks_ahead(careful) {
            let plan = timeline.recover_and_plan(thread, request, caller, handling, place)?;
            // What was restored after a power cut is reported at the end of the command.
            for recovered in &plan.preview().recovered {
                files::write_recovered(&mut stderr(self.general.color), self, recovered)?;
            }
            self.name_folder(plan.preview().folder.as_deref())?;
            if self.look_ahead(plan.preview())? == Decision::Stop {
                return Err(Failure::new(Code::Refused, STOPPED));
            }
            plan.execute()?
        } else {
            let executed = timeline.perform(thread, request, caller, handling, place)?;
            self.name_folder(executed.files.as_ref().and_then(|files| files.folder.as_deref()))?;
            executed
        };
        self.warn_of_budget();
        Ok(Carried::Done(executed))
    }

    /// Opens or closes the folder of a take, or only says what that would do.
    pub(crate) fn change_worktree(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        dry_run: bool,
    ) -> Result<Carried, Failure> {
        let (timeline, options) = (self.timeline()?, self.file_options());
        let (handling, place) = (Handling::default(), (Some(&options), None));
        if dry_run {
            let plan = timeline.plan(thread, request, caller, handling, place)?;
            return Ok(Carried::Previewed(plan.into_preview()));
        }
        Ok(Carried::Done(timeline.perform(thread, request, caller, handling, place)?))
    }

    /// Makes a change after which another take may be the active one, its files along with it; `None` if it was only
    /// shown what would be done.
    pub(crate) fn change_takes(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
        flags: FileFlags,
    ) -> Result<Option<Changed>, Failure> {
        let (caller, request) = (self.caller(thread, expect)?, PlanRequest::Change(command));
        match self.carry_out(thread, request, caller, flags.handling(), flags.careful())? {
            Carried::Done(Executed { done, files, .. }) => Ok(Some(Changed { done, files })),
            Carried::Previewed(preview) => {
                self.report_preview(preview)?;
                Ok(None)
            }
        }
    }

    /// Says what would be done.
    pub(crate) fn report_preview(&self, preview: Preview) -> Result<(), Failure> {
        let answer = PreviewAnswer { files: preview.files.clone(), dry_run: true, would: preview };
        self.report(&answer, |out, _| files::write_preview(out, self, &answer.would))
    }

    /// The path below the project's folder that a person means by a path on the command line.
    pub(crate) fn root_path(&self, path: &Path) -> Result<RootPath, Failure> {
        self.root_path_in(None, path)
    }

    /// The same below the folder that a thread's files are in. Where the command was started elsewhere, a path goes on
    /// from that folder.
    pub(crate) fn root_path_of(&self, thread: ThreadId, path: &Path) -> Result<RootPath, Failure> {
        self.root_path_in(Some(thread), path)
    }

    fn root_path_in(&self, thread: Option<ThreadId>, path: &Path) -> Result<RootPath, Failure> {
        let roots = self.file_roots(thread)?;
        let base = if thread.is_some() { self.base_of_paths(&roots) } else { self.directory().to_owned() };
        let absolute = std::path::absolute(base.join(path))
            .map_err(|error| Failure::new(Code::Usage, format!("{}: {error}", path.display())))?;
        let normal = normalised(&absolute);
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

    /// Where a path on the command line goes on from: the folder that the command was started in if it is one of these
    /// or inside, else the first.
    pub(crate) fn base_of_paths(&self, roots: &[(String, PathBuf)]) -> PathBuf {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        let inside = roots.iter().any(|(_, root)| here.starts_with(root));
        match roots.first() {
            Some((_, main)) if !inside => main.clone(),
            _ => self.directory().to_owned(),
        }
    }

    /// The desk of the project's folder with other further roots than those that are known.
    pub(crate) fn desk_with_roots(&self, others: &[(String, PathBuf)]) -> Result<Desk, Failure> {
        let workspace = Workspace::open(&path_from_text(&self.project()?.path), others, self.file_options())?;
        let project = self.own_project()?;
        Ok(Desk::at(self.timeline()?.clone(), project.id, workspace))
    }

    /// The folders that files are kept of, by name, the main one first: those of a thread, or of the project that the
    /// command was started in.
    pub(crate) fn file_roots(&self, thread: Option<ThreadId>) -> Result<Vec<(String, PathBuf)>, Failure> {
        let looking = self.timeline()?.look()?;
        let apart = self.apart()?.filter(|apart| thread.is_none_or(|thread| thread == apart.thread));
        if let Some(apart) = apart {
            return Ok(vec![(String::new(), apart.path.clone())]);
        }
        let (project, main) = match thread {
            Some(thread) => {
                let home = looking.thread(thread)?.home;
                (home, self.timeline()?.folder_of_project(home)?)
            }
            None => (self.project()?.id, path_from_text(&self.project()?.path)),
        };
        let others = looking.other_roots(project)?;
        let others = others.into_iter().map(|root| (root.name, root.path));
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
    pub(crate) fn look_ahead(&self, preview: &Preview) -> Result<Decision, Failure> {
        if !preview.files.as_ref().is_some_and(FileReport::moves_files) {
            return Ok(Decision::Go);
        }
        let mut out = stderr(self.general.color);
        files::write_preview(&mut out, self, preview)?;
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
