//! Plans a request: computes its effects without changing anything, shows them as a [`Preview`], and executes
//! or discards the plan.
//!
//! ```text
//!   request ──► which folder, if any ──► observe, record and compose, then roll back ──────────► Plan
//!                                                                                                 │
//!                                             preview() ◄─────────────────────────────────────────┤
//!               lock, recover, record, resolve, move, publish ◄── execute(), if nothing changed ──┘
//! ```
//!
//! Undo, redo, jump, restore, switch, branch, fork, retry, promote and worktrees all use plans, with or
//! without files.

use std::path::PathBuf;

use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::intent::{FolderRecord, FolderRun};
use retake_model::operation::Version;
use retake_model::path::RootPath;
use retake_store::{Queries, WriteTransaction};
use retake_workspace::snapshot::Options;

use super::execute::ExecutedMove;
use super::recover::Recovery;
use super::report::{FileReport, of_plan};
use super::resolve_request::{self, ResolvedRequest};
use super::take_folder::TakeFolder;
use super::{FileError, MoveOptions, PlanOutcome, Preview, Scope, SharedChanges, WorkingCopy, Worktree};
use crate::write::change::{Head, head_of, stays_in_background};
use crate::write::moves::{Destination, RouteFiles};
use crate::{Caller, ChangeError, ChangeOutcome, Command, Goal, HistoryMove, Timeline};

/// A request to plan.
#[derive(Clone, Debug)]
pub enum PlanRequest {
    /// Undo, redo or jump.
    Move(Goal),
    /// Restore files from a snapshot of the thread: these paths, or all if empty.
    Restore {
        /// The snapshot.
        snapshot: ContentId,
        /// The paths.
        paths: Vec<RootPath>,
    },
    /// Apply a command. If it makes another take active, the files of that take move in.
    Change(Command),
    /// Promote a take to a thread.
    Promote {
        /// The take.
        take: TakeId,
        /// Title of the new thread; `None` for the name of the take.
        title: Option<String>,
    },
    /// Create a worktree with the files of a take.
    OpenWorktree {
        /// The take.
        take: TakeId,
        /// Path of the worktree, which must not exist yet.
        folder: PathBuf,
    },
    /// Record the last changes in a worktree, then remove it.
    CloseWorktree {
        /// The worktree.
        folder: Box<Worktree>,
        /// Whether to delete its recorded files.
        remove: bool,
    },
}

/// A request with its computed effects, ready to execute.
#[must_use = "a plan does nothing before it is executed"]
pub struct Plan {
    order: PlannedRequest,
    basis: Basis,
    preview: Preview,
}

/// A request with its caller, thread and folder.
#[derive(Clone)]
pub(super) struct PlannedRequest {
    pub(super) timeline: Timeline,
    /// The folder whose files are involved; `None` if only the conversation is.
    pub(super) working_copy: Option<WorkingCopy>,
    /// The named take, or that of the worktree in which the request was made; `None` for the active one.
    pub(super) take: Option<TakeId>,
    pub(super) thread: ThreadId,
    pub(super) request: PlanRequest,
    pub(super) caller: Caller,
    pub(super) options: MoveOptions,
    /// Whether a new take stays in the background, so that no files move although files are captured.
    pub(super) background: bool,
    /// The worktree of a background take's source take. Its changes are recorded first.
    pub(super) source: Option<WorkingCopy>,
    /// What a move without a folder does about file changes on its route.
    pub(super) route_files: RouteFiles,
}

/// The state that a plan was made for. The plan is valid only as long as it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    pub(super) version: Version,
    pub(super) snapshot: Option<ContentId>,
}

impl Timeline {
    /// Plans a request for a thread and the files in its folder. Changes nothing.
    ///
    /// `files` says how files are captured; `None` if they are not. `take` names a take other than the active
    /// one: undo, redo and jump then move it, with the files of its worktree. A take without a worktree moves
    /// alone, and only over changes without files.
    pub fn plan(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
        (files, take): (Option<&Options>, Option<TakeId>),
    ) -> Result<Plan, FileError> {
        self.planned_request(thread, request, caller, options, (files, take))?.plan()
    }

    /// Like `plan`, but first completes moves that a crash interrupted, unless another process is using the
    /// folder. The preview reports them.
    pub fn recover_and_plan(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
        (files, worktree): (Option<&Options>, Option<TakeId>),
    ) -> Result<Plan, FileError> {
        self.planned_request(thread, request, caller, options, (files, worktree))?.recover_and_plan()
    }

    /// Executes a request immediately, whatever the current state of the thread and its files.
    pub fn perform(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
        (files, take): (Option<&Options>, Option<TakeId>),
    ) -> Result<PlanOutcome, FileError> {
        loop {
            let order =
                self.planned_request(thread, request.clone(), caller.clone(), options, (files, take))?;
            match order.perform(None) {
                // The thread got its first files in the meantime, so its folder is involved now.
                Err(FileError::PlanOutdated) => {}
                other => return other,
            }
        }
    }

    fn planned_request(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
        (files, take): (Option<&Options>, Option<TakeId>),
    ) -> Result<PlannedRequest, FileError> {
        check_scope(&request, options)?;
        let folder = self.folder_of_take(thread, take)?;
        let is_move = matches!(request, PlanRequest::Move(_));
        let has_no_folder = is_move && files.is_some() && folder == TakeFolder::None;
        let worktree = take.filter(|_| folder == TakeFolder::Worktree);
        let working_copy = match options.scope {
            Scope::Files if has_no_folder => {
                let name = self.name_of_take(thread, take)?;
                return Err(FileError::NoFolder(name));
            }
            _ if has_no_folder => None,
            _ => self.folder_for(thread, &request, options, (files, worktree))?,
        };
        let route_files = match route_files(&request, options, working_copy.as_ref()) {
            RouteFiles::Absent if has_no_folder => RouteFiles::Refuse,
            RouteFiles::Absent if files.is_none() => RouteFiles::Leave,
            files => files,
        };
        let timeline = self.clone();
        PlannedRequest {
            timeline,
            working_copy,
            take,
            thread,
            request,
            caller,
            options,
            background: false,
            source: None,
            route_files,
        }
        .with_background(files)
    }

    /// Returns whether a command creates a take that stays in the background.
    pub(super) fn is_background(&self, thread: ThreadId, command: &Command) -> Result<bool, FileError> {
        let reader = self.read()?;
        let (active, leases) = (reader.state(thread)?.active, self.store.turn_leases());
        Ok(stays_in_background(&reader.queries(), thread, active, &leases, command)?)
    }

    pub(super) fn has_files(&self, thread: ThreadId, worktree: Option<TakeId>) -> Result<bool, FileError> {
        Ok(has_files(&self.read()?.queries(), thread, worktree)?)
    }
}

/// Returns whether a thread has recorded files or is about to: a running or crashed tool in its folder may
/// have changed some.
pub(crate) fn has_files(
    queries: &Queries<'_>,
    thread: ThreadId,
    worktree: Option<TakeId>,
) -> Result<bool, ChangeError> {
    let (row, head) = head_of(queries, thread)?;
    if head.last_file_operation.is_some() {
        return Ok(true);
    }
    let here = |folder: &FolderRecord| match (folder.worktree, worktree) {
        (Some(worktree), Some(take)) => worktree.thread == thread && worktree.take == take,
        (None, None) => folder.project == row.home,
        _ => false,
    };
    let ours = |run: &FolderRun| run.thread == thread;
    Ok(queries.folders()?.iter().any(|folder| here(folder) && folder.runs().any(ours)))
}

/// Rejects changing the files of a take without its conversation. Only moves along the log support that.
fn check_scope(request: &PlanRequest, options: MoveOptions) -> Result<(), FileError> {
    let alone = options.scope == Scope::Files;
    let changes_takes = match request {
        PlanRequest::Change(command) => !matches!(command, Command::Merge { .. }),
        request => matches!(request, PlanRequest::Promote { .. }),
    };
    if alone && changes_takes { Err(FileError::FilesOnlyUnsupported) } else { Ok(()) }
}

/// What a move does about file changes on its route. A move without a folder expects no file changes, unless
/// only the conversation is to move.
fn route_files(
    request: &PlanRequest,
    options: MoveOptions,
    working_copy: Option<&WorkingCopy>,
) -> RouteFiles {
    match request {
        PlanRequest::Move(_) if working_copy.is_none() && options.scope != Scope::Conversation => {
            RouteFiles::Absent
        }
        _ => RouteFiles::Leave,
    }
}

impl WorkingCopy {
    /// Plans a request for a thread and the files in this folder. Changes nothing.
    pub fn plan(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
    ) -> Result<Plan, FileError> {
        self.planned_request(thread, request, caller, options)?.plan()
    }

    /// Like `plan`, but first completes moves that a crash interrupted, unless another process is using the
    /// folder. The preview reports them.
    pub fn recover_and_plan(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
    ) -> Result<Plan, FileError> {
        self.planned_request(thread, request, caller, options)?.recover_and_plan()
    }

    /// Executes a request immediately.
    pub(super) fn planned_request(
        &self,
        thread: ThreadId,
        request: PlanRequest,
        caller: Caller,
        options: MoveOptions,
    ) -> Result<PlannedRequest, FileError> {
        check_scope(&request, options)?;
        let timeline = self.timeline.clone();
        let worktree = self.worktree.map(|worktree| worktree.take);
        let involved = timeline.involves_files(thread, &request, options, worktree)?;
        if involved {
            self.check_thread(thread)?;
        }
        let working_copy = match &request {
            _ if !involved => None,
            PlanRequest::CloseWorktree { folder, .. } if folder.id != self.folder => {
                let options = self.workspace.file_options();
                let gone = folder.is_gone()?;
                if gone { None } else { Some(Self::of_worktree(&timeline, folder, options)?) }
            }
            // The active take determines the files in the project's folder, wherever the command runs.
            PlanRequest::Change(_) | PlanRequest::OpenWorktree { .. } if self.worktree.is_some() => {
                Some(Self::of_project(&timeline, self.project, self.workspace.file_options())?)
            }
            _ => Some(self.clone()),
        };
        let (take, route_files) = (worktree, route_files(&request, options, working_copy.as_ref()));
        PlannedRequest {
            timeline,
            working_copy,
            take,
            thread,
            request,
            caller,
            options,
            background: false,
            source: None,
            route_files,
        }
        .with_background(Some(self.workspace.file_options()))
    }

    /// Rejects a thread whose files are in another folder.
    pub(super) fn check_thread(&self, thread: ThreadId) -> Result<(), FileError> {
        let ours = match self.worktree {
            Some(worktree) => worktree.thread == thread,
            None => self.timeline.read()?.thread(thread)?.home == self.project,
        };
        let folder = || self.path().to_owned();
        if ours { Ok(()) } else { Err(FileError::WrongFolder { thread, folder: folder() }) }
    }
}

impl Plan {
    /// The preview of the plan.
    pub fn preview(&self) -> &Preview {
        &self.preview
    }

    /// Discards the plan and returns its preview.
    pub fn into_preview(self) -> Preview {
        self.preview
    }

    /// Executes the plan if the thread and its files are unchanged since it was made.
    pub fn execute(self) -> Result<PlanOutcome, FileError> {
        self.order.perform(Some(self.basis))
    }
}

impl PlannedRequest {
    /// Completes the request with where its new take stays, and with the worktree that the take starts from.
    fn with_background(self, files: Option<&Options>) -> Result<Self, FileError> {
        let background = match &self.request {
            PlanRequest::Change(command) if self.working_copy.is_none() => {
                self.timeline.is_background(self.thread, command)?
            }
            _ => false,
        };
        let captured = files.filter(|_| background && self.options.scope != Scope::Conversation);
        let source = self.timeline.source_worktree(self.thread, &self.request, captured)?;
        Ok(Self { background, source, ..self })
    }

    fn plan(self) -> Result<Plan, FileError> {
        self.check_snapshot()?;
        let (basis, preview) = self.build_preview()?;
        Ok(Plan { order: self, basis, preview })
    }

    fn recover_and_plan(self) -> Result<Plan, FileError> {
        self.check_snapshot()?;
        let mut recovery = Recovery::default();
        loop {
            let error = match self.build_preview() {
                Ok((basis, mut preview)) => {
                    (preview.recovered, preview.emptied) = (recovery.moves, recovery.emptied);
                    return Ok(Plan { order: self, basis, preview });
                }
                Err(error) => error,
            };
            let found = match (&error, &self.working_copy) {
                (FileError::MoveUnfinished(_) | FileError::EmptiedFiles(_), Some(working_copy)) => {
                    working_copy.recover()?
                }
                (FileError::Change(ChangeError::Moving(folder)), _) => {
                    self.timeline.recover_unlocked(*folder)?
                }
                _ => return Err(error),
            };
            if found.is_empty() {
                return Err(error);
            }
            recovery.moves.extend(found.moves);
            recovery.emptied.extend(found.emptied);
        }
    }

    /// Executes the request; given a basis, only if the thread and its files still match it.
    pub(super) fn perform(&self, basis: Option<Basis>) -> Result<PlanOutcome, FileError> {
        self.check_snapshot()?;
        loop {
            let done = self.timeline.settled_files(|| match &self.working_copy {
                working_copy if self.request.is_of_worktree() => {
                    self.change_worktree(working_copy.as_ref(), basis)
                }
                Some(working_copy) => self.with_files(working_copy, basis),
                None => self.without_files(basis),
            });
            match done {
                Err(FileError::Change(ChangeError::Conflict { .. })) if self.caller.expected.is_none() => {
                    // The thread changed in the meantime.
                    if basis.is_some() {
                        return Err(FileError::PlanOutdated);
                    }
                }
                other => return other,
            }
        }
    }

    /// Rejects a snapshot that does not belong to the thread.
    fn check_snapshot(&self) -> Result<(), FileError> {
        match &self.request {
            PlanRequest::Restore { snapshot, .. }
                if !self.timeline.read()?.files(self.thread).has_snapshot(*snapshot)? =>
            {
                Err(FileError::NoSuchSnapshot)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn caller(&self, basis: Option<Basis>) -> Caller {
        match basis {
            Some(basis) => self.caller.clone().expecting(basis.version),
            None => self.caller.clone(),
        }
    }

    fn without_files(&self, basis: Option<Basis>) -> Result<PlanOutcome, FileError> {
        let (timeline, thread, caller) = (&self.timeline, self.thread, self.caller(basis));
        Ok(match self.request.clone() {
            PlanRequest::Move(goal) => {
                let moved = timeline.move_conversation(thread, self.take, goal, caller, self.route_files)?;
                PlanOutcome::moved(moved.ok_or(FileError::PlanOutdated)?, None)
            }
            PlanRequest::Change(command) if self.background => {
                let caller = match &self.source {
                    Some(source) => {
                        let recorded = source.record_changes(thread, caller)?;
                        self.caller.clone().expecting(recorded.version)
                    }
                    None => caller,
                };
                PlanOutcome::done(Some(timeline.change_in_background(thread, command, caller)?), None)
            }
            PlanRequest::Change(command) => {
                PlanOutcome::done(Some(timeline.change(thread, command, caller)?), None)
            }
            PlanRequest::Promote { take, title } => {
                PlanOutcome::promoted(timeline.promote(thread, take, title, caller)?)
            }
            PlanRequest::Restore { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => return Err(FileError::FilesDisabled),
        })
    }

    fn with_files(&self, working_copy: &WorkingCopy, basis: Option<Basis>) -> Result<PlanOutcome, FileError> {
        let thread = self.thread;
        let mut session = working_copy.begin()?;
        session.expected = basis.and_then(|basis| basis.snapshot);
        // Checked before the folder is recorded, which would fail with a less specific error while a turn is
        // running.
        self.check_turns()?;
        let present = session.current_files(thread, &self.caller(basis))?;
        let (pending_operation, plan, files_unknown) = {
            let reader = self.timeline.read()?;
            let queries = reader.queries();
            let ResolvedRequest { pending_operation, steps, shared, files_unknown } =
                self.resolve_request(working_copy, &queries, present.id)?;
            let refuses = basis.is_none() && self.options.shared == SharedChanges::Refuse;
            if refuses && !shared.is_empty() {
                return Err(FileError::SharedChanges(shared));
            }
            let plan = resolve_request::plan_files(
                &self.timeline,
                &queries,
                &present.snapshot,
                &steps,
                self.options.on_conflict,
            )?;
            (pending_operation, plan, files_unknown)
        };
        let moving = plan.moving();
        match (&self.request, self.options.scope) {
            (PlanRequest::Restore { .. }, _) if moving == 0 => {
                let paths = of_plan(&plan, None);
                let report = FileReport::new(present.id, plan.wanted, paths, session.recovered);
                return Ok(PlanOutcome::done(None, Some(report.in_folder(working_copy))));
            }
            (PlanRequest::Move(_), Scope::Files) if moving == 0 => return Err(FileError::NothingMoves),
            (PlanRequest::Promote { take, title }, _) => {
                let caller = self.caller.clone().expecting(present.version);
                drop(session);
                return Ok(PlanOutcome::promoted(self.timeline.promote(
                    thread,
                    *take,
                    title.clone(),
                    caller,
                )?));
            }
            _ => {}
        }
        let way = pending_operation.way().cloned();
        if let (PlanRequest::Move(Goal::Jump(_)), Some(way)) = (&self.request, &way)
            && moving == 0
            && way.cursor.route().is_empty()
        {
            let paths = of_plan(&plan, None);
            let report = FileReport::new(present.id, present.id, paths, session.recovered);
            return self.moved(
                Destination { steps: 0, ..way.clone() },
                (self.unchanged()?, Vec::new()),
                report.in_folder(working_copy),
            );
        }
        let composing = pending_operation.composing(self, moving);
        let carried = session.execute(thread, &present, plan, &self.caller, composing);
        let ExecutedMove { done, also, report } = match carried {
            Err(FileError::Unchanged(done)) => return Ok(PlanOutcome::done(Some(*done), None)),
            other => other?,
        };
        let report = FileReport { files_unknown, ..report.in_folder(working_copy) };
        match way {
            Some(way) => self.moved(way, (done, also), report),
            None => Ok(PlanOutcome::done(Some(done), Some(report))),
        }
    }

    /// The thread without a new operation.
    fn unchanged(&self) -> Result<ChangeOutcome, FileError> {
        let thread = self.thread;
        let read = move |writing: &WriteTransaction<'_>| -> Result<ChangeOutcome, FileError> {
            Ok(Head::any_version(writing, thread)?.unchanged())
        };
        Ok(self.timeline.store.write(read)?)
    }

    /// The outcome of a move with files.
    fn moved(
        &self,
        way: Destination,
        (done, also): (ChangeOutcome, Vec<ThreadId>),
        report: FileReport,
    ) -> Result<PlanOutcome, FileError> {
        let thread = self.thread;
        let undo_status = self.timeline.read()?.history(thread).in_take(self.take).undo_status()?;
        let (position, can_undo, can_redo) =
            (undo_status.position, undo_status.can_undo, undo_status.can_redo);
        let (steps, route) = (way.steps, way.cursor.route().to_vec());
        let moved = HistoryMove { done, steps, position, can_undo, can_redo, also, route };
        Ok(PlanOutcome::moved(moved, Some(report)))
    }
}
