//! Commands that change files: working copies, options, previews and confirmation.

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

/// Which scope moves, and how conflicts are handled.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileFlags {
    /// Move only the conversation; do not change files.
    #[arg(long, conflicts_with = "files")]
    conversation: bool,
    /// Move only the files; keep the conversation where it is.
    #[arg(long)]
    files: bool,
    /// How to handle a file whose later changes cannot be merged.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    conflicts: Conflicts,
    /// Whether to undo changes that several commands or tools made together.
    #[arg(skip)]
    shared: bool,
    #[command(flatten)]
    careful: Careful,
}

/// Options for preview and confirmation.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Careful {
    /// Only show which files would change.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before changing files.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// How to handle conflicting files.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Conflicts {
    /// Keep the current file.
    #[default]
    Keep,
    /// Write the version from the history.
    Take,
    /// Write both versions to the file, with conflict markers.
    Mark,
}

impl FileFlags {
    /// Sets whether to undo changes that several commands or tools made together.
    pub(crate) fn with_shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

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

/// The answer of a dry run.
#[derive(Serialize)]
struct PreviewAnswer {
    dry_run: bool,
    preview: Preview,
    files: Option<FileReport>,
}

/// The user's answer after a preview.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Go,
    Stop,
}

/// The result of a command that may change files.
pub(crate) enum Carried {
    Done(Executed),
    /// A dry run.
    Previewed(Preview),
}

impl Context {
    /// The working copy of a thread: the worktree that the command was started in, or the folder of the thread's
    /// project. The current folder only selects the thread.
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

    /// The take of this thread whose worktree contains the current folder.
    pub(crate) fn worktree_of(&self, thread: ThreadId) -> Result<Option<TakeId>, Failure> {
        Ok(self.apart()?.filter(|apart| apart.thread == thread).map(|apart| apart.take))
    }

    /// Reports the affected folder if it is not the current one.
    pub(crate) fn name_folder(&self, folder: Option<&str>) -> Result<(), Failure> {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        match folder {
            Some(folder) if !here.starts_with(path_from_text(folder)) => {
                self.remark(&format!("The files of this thread are in {folder}."))
            }
            _ => Ok(()),
        }
    }

    /// Executes a request in the thread's folder, after a preview and confirmation if the session is interactive; a dry
    /// run only plans it.
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

    /// The same for a take, or for the active one if none is named.
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
            // Files restored after a power cut are reported at the end of the command.
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

    /// Adds or removes a worktree, or only plans it.
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

    /// Makes a change that may switch takes and their files; `None` for a dry run.
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

    pub(crate) fn report_preview(&self, preview: Preview) -> Result<(), Failure> {
        let answer = PreviewAnswer { files: preview.files.clone(), dry_run: true, preview };
        self.report(&answer, |out, _| files::write_preview(out, self, &answer.preview))
    }

    /// Converts a path argument to a path in the project's folder.
    pub(crate) fn root_path(&self, path: &Path) -> Result<RootPath, Failure> {
        self.root_path_in(None, path)
    }

    /// Converts a path argument to a path in the thread's folder. A relative path starts at that folder if the command
    /// was started elsewhere.
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
        let message = format!("{} is outside the project's folder", path.display());
        Err(Failure::new(Code::Usage, message))
    }

    /// The folder that relative paths start from: the current folder if it is in one of the roots, otherwise the first
    /// root.
    pub(crate) fn base_of_paths(&self, roots: &[(String, PathBuf)]) -> PathBuf {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        let inside = roots.iter().any(|(_, root)| here.starts_with(root));
        match roots.first() {
            Some((_, main)) if !inside => main.clone(),
            _ => self.directory().to_owned(),
        }
    }

    /// The working copy of the project's folder with these additional roots instead of the recorded ones.
    pub(crate) fn desk_with_roots(&self, others: &[(String, PathBuf)]) -> Result<Desk, Failure> {
        let workspace = Workspace::open(&path_from_text(&self.project()?.path), others, self.file_options())?;
        let project = self.own_project()?;
        Ok(Desk::at(self.timeline()?.clone(), project.id, workspace))
    }

    /// The recorded folders by name, the main one first: of a thread, or of the current project.
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

    /// Whether to show a preview and ask before files change.
    pub(crate) fn looks_ahead(&self, careful: Careful) -> bool {
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        terminal && !careful.dry_run && !careful.yes && !self.general.json && self.config.files.confirm
    }

    /// Shows the preview and asks for confirmation.
    pub(crate) fn look_ahead(&self, preview: &Preview) -> Result<Decision, Failure> {
        if !preview.files.as_ref().is_some_and(FileReport::moves_files) {
            return Ok(Decision::Go);
        }
        let mut out = stderr(self.general.color);
        files::write_preview(&mut out, self, preview)?;
        write!(out, "Continue? [Y/n] ")?;
        out.flush()?;
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        let no = matches!(line.trim().to_lowercase().as_str(), "n" | "no");
        Ok(if read == 0 || no { Decision::Stop } else { Decision::Go })
    }
}

/// Removes `.` and `..` from the path's text, without following links.
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

/// Reported when the user declines after a preview.
pub(crate) const STOPPED: &str = "Nothing was changed.";
