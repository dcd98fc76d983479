//! Commands that change files: working copies, options, previews and confirmation.

use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_timeline::{
    Caller, ChangeReport, Command, FileReport, MoveOptions, PlanOutcome, PlanRequest, Preview, Scope,
    SharedChanges, WorkingCopy,
};
use retake_workspace::folder::{path_from_text, path_to_text};
use retake_workspace::snapshot::{Options, Workspace};
use serde::Serialize;

use crate::arguments::choice;
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
    #[arg(long, value_parser = choice::<OnConflict>(), default_value = "keep", value_name = "HOW")]
    conflicts: OnConflict,
    /// Whether to undo changes that several commands or tools made together.
    #[arg(skip)]
    shared: bool,
    #[command(flatten)]
    confirm_flags: ConfirmFlags,
}

/// Options for preview and confirmation.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ConfirmFlags {
    /// Only show which files would change.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before changing files.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl FileFlags {
    /// Sets whether to undo changes that several commands or tools made together.
    pub(crate) fn with_shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    pub(crate) fn move_options(self) -> MoveOptions {
        let scope = match (self.conversation, self.files) {
            (true, _) => Scope::Conversation,
            (_, true) => Scope::Files,
            _ => Scope::Both,
        };
        let shared = if self.shared { SharedChanges::Undo } else { SharedChanges::Refuse };
        MoveOptions { scope, on_conflict: self.conflicts, shared }
    }

    pub(crate) fn confirm_flags(self) -> ConfirmFlags {
        self.confirm_flags
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
pub(crate) enum MoveResult {
    Done(PlanOutcome),
    /// A dry run.
    Previewed(Preview),
}

impl Context {
    /// The working copy of a thread: the worktree that the command was started in, or the folder of the thread's
    /// project. The current folder only selects the thread.
    pub(crate) fn working_copy_of(&self, thread: ThreadId) -> Result<WorkingCopy, Failure> {
        let timeline = self.timeline()?;
        let take = match self.worktree_of(thread)? {
            Some(take) => take,
            None => timeline.read()?.state(thread)?.active,
        };
        let working_copy = WorkingCopy::of_take(timeline, thread, take, &self.file_options())?;
        self.report_folder(Some(&path_to_text(working_copy.path())))?;
        Ok(working_copy)
    }

    /// The take of this thread whose worktree contains the current folder.
    pub(crate) fn worktree_of(&self, thread: ThreadId) -> Result<Option<TakeId>, Failure> {
        Ok(self.worktree()?.filter(|worktree| worktree.thread == thread).map(|worktree| worktree.take))
    }

    /// Reports the affected folder if it is not the current one.
    pub(crate) fn report_folder(&self, folder: Option<&str>) -> Result<(), Failure> {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        match folder {
            Some(folder) if !here.starts_with(path_from_text(folder)) => {
                self.note(&format!("The files of this thread are in {folder}."))
            }
            _ => Ok(()),
        }
    }

    /// Executes a request in the thread's folder, after a preview and confirmation if the session is interactive; a dry
    /// run only plans it.
    pub(crate) fn execute(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        move_options: MoveOptions,
        confirm_flags: ConfirmFlags,
    ) -> Result<MoveResult, Failure> {
        let take = self.worktree_of(thread)?;
        self.execute_in((thread, take), request, caller, move_options, confirm_flags)
    }

    /// The same for a take, or for the active one if none is named.
    pub(crate) fn execute_in(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        caller: Caller,
        move_options: MoveOptions,
        confirm_flags: ConfirmFlags,
    ) -> Result<MoveResult, Failure> {
        let timeline = self.timeline()?;
        let files = self.file_options();
        let place = (Some(&files), take);
        let move_options = self.without_files_of_takes(&request, move_options);
        if confirm_flags.dry_run {
            let plan = timeline.plan(thread, request, caller, move_options, place)?;
            let preview = plan.into_preview();
            self.report_folder(preview.folder.as_deref())?;
            return Ok(MoveResult::Previewed(preview));
        }
        let executed = if self.needs_confirmation(confirm_flags) {
            let plan = timeline.recover_and_plan(thread, request, caller, move_options, place)?;
            // Files restored after a power cut are reported at the end of the command.
            for recovered in &plan.preview().recovered {
                files::write_recovered(&mut stderr(self.general.color), self, recovered)?;
            }
            self.report_folder(plan.preview().folder.as_deref())?;
            if self.confirm_preview(plan.preview())? == Decision::Stop {
                return Err(Failure::new(Code::Refused, NOTHING_CHANGED));
            }
            plan.execute()?
        } else {
            let executed = timeline.perform(thread, request, caller, move_options, place)?;
            self.report_folder(executed.files.as_ref().and_then(|files| files.folder.as_deref()))?;
            executed
        };
        self.warn_of_budget();
        Ok(MoveResult::Done(executed))
    }

    /// With `files.enabled = false`, making another take active moves no files.
    fn without_files_of_takes(&self, request: &PlanRequest, options: MoveOptions) -> MoveOptions {
        let stays = !self.config.files.enabled && matches!(request, PlanRequest::Change(_));
        if stays { MoveOptions { scope: Scope::Conversation, ..options } } else { options }
    }

    /// Adds or removes a worktree, or only plans it.
    pub(crate) fn change_worktree(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        dry_run: bool,
    ) -> Result<MoveResult, Failure> {
        let (timeline, options) = (self.timeline()?, self.file_options());
        let (move_options, place) = (MoveOptions::default(), (Some(&options), None));
        if dry_run {
            let plan = timeline.plan(thread, request, caller, move_options, place)?;
            return Ok(MoveResult::Previewed(plan.into_preview()));
        }
        Ok(MoveResult::Done(timeline.perform(thread, request, caller, move_options, place)?))
    }

    /// Makes a change that may switch takes and their files; `None` for a dry run.
    pub(crate) fn change_takes(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
        flags: FileFlags,
    ) -> Result<Option<ChangeReport>, Failure> {
        let (caller, request) = (self.caller(thread, expect)?, PlanRequest::Change(command));
        match self.execute(thread, request, caller, flags.move_options(), flags.confirm_flags())? {
            MoveResult::Done(PlanOutcome { done, files, .. }) => Ok(Some(ChangeReport { done, files })),
            MoveResult::Previewed(preview) => {
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
        let base = if thread.is_some() { self.path_base(&roots) } else { self.directory().to_owned() };
        let absolute = std::path::absolute(base.join(path))
            .map_err(|error| Failure::new(Code::Usage, format!("{}: {error}", path.display())))?;
        let normal = normalized(&absolute);
        // Reports write paths of additional roots as `NAME:PATH`; a file that really has such a name comes first.
        if let Some(found) = path_in_named_root(&roots, path)
            && !normal.exists()
        {
            return Ok(found);
        }
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
    pub(crate) fn path_base(&self, roots: &[(String, PathBuf)]) -> PathBuf {
        let here = self.directory().canonicalize().unwrap_or_else(|_| self.directory().to_owned());
        let inside = roots.iter().any(|(_, root)| here.starts_with(root));
        match roots.first() {
            Some((_, main)) if !inside => main.clone(),
            _ => self.directory().to_owned(),
        }
    }

    /// The working copy of the project's folder with these additional roots instead of the recorded ones.
    pub(crate) fn working_copy_with_roots(
        &self,
        others: &[(String, PathBuf)],
    ) -> Result<WorkingCopy, Failure> {
        let workspace = Workspace::open(&path_from_text(&self.project()?.path), others, self.file_options())?;
        let project = self.project_or_create()?;
        Ok(WorkingCopy::at(self.timeline()?.clone(), project.id, workspace))
    }

    /// The recorded folders by name, the main one first: of a thread, or of the current project.
    pub(crate) fn file_roots(&self, thread: Option<ThreadId>) -> Result<Vec<(String, PathBuf)>, Failure> {
        let reader = self.timeline()?.read()?;
        let worktree =
            self.worktree()?.filter(|worktree| thread.is_none_or(|thread| thread == worktree.thread));
        if let Some(worktree) = worktree {
            return Ok(vec![(String::new(), worktree.path.clone())]);
        }
        let (project, main) = match thread {
            Some(thread) => {
                let home = reader.thread(thread)?.home;
                (home, self.timeline()?.folder_of_project(home)?)
            }
            None => (self.project()?.id, path_from_text(&self.project()?.path)),
        };
        let others = reader.project(project).additional_roots()?;
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
    pub(crate) fn needs_confirmation(&self, confirm_flags: ConfirmFlags) -> bool {
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        terminal
            && !confirm_flags.dry_run
            && !confirm_flags.yes
            && !self.general.json
            && self.config.files.confirm
    }

    /// Shows the preview and asks for confirmation.
    pub(crate) fn confirm_preview(&self, preview: &Preview) -> Result<Decision, Failure> {
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

/// The path that `NAME:PATH` names below an additional root.
fn path_in_named_root(roots: &[(String, PathBuf)], path: &Path) -> Option<RootPath> {
    let (name, below) = path.to_str()?.split_once(':')?;
    let (root, _) = roots.iter().skip(1).find(|(root, _)| root == name)?;
    Some(RootPath { root: root.clone(), path: TreePath::new(below.as_bytes()).ok()? })
}

/// Removes `.` and `..` from the path's text, without following links.
fn normalized(path: &Path) -> PathBuf {
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
pub(crate) const NOTHING_CHANGED: &str = "Nothing was changed.";
