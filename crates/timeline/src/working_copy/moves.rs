//! Undo, redo and jump with files.

use retake_model::id::{TakeId, ThreadId};
use retake_model::intent::WorktreeTake;
use retake_model::merge::MergeLabels;
use retake_model::object::load;
use retake_model::replay;
use retake_model::state::ThreadState;
use retake_store::Queries;
use serde::Serialize;

use super::files_only::file_destination;
use super::jump::FolderChanges;
use super::plan::FolderKind;
use super::report::FileReport;
use super::resolve_request::PendingOperation;
use super::{FileError, MoveOptions, PlanRequest, Scope, WorkingCopy, route};
use crate::write::change::head_of;
use crate::write::moves::view_of;
use crate::{Caller, Goal, HistoryMove};

/// The outcome of a move of conversation and files.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MoveOutcome {
    /// The change of the conversation; `None` for a preview.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub moved: Option<HistoryMove>,
    /// The changes of files; `None` if the thread has none, or only the conversation moves.
    pub files: Option<FileReport>,
}

/// The texts that name the two sides of a marked conflict.
pub(super) const LABELS: MergeLabels<'static> = MergeLabels { ours: "as it is", theirs: "as it would be" };

impl WorkingCopy {
    /// Moves the conversation, the files, or both along the log.
    pub fn go(
        &self,
        thread: ThreadId,
        goal: Goal,
        caller: Caller,
        move_options: MoveOptions,
    ) -> Result<MoveOutcome, FileError> {
        loop {
            let order =
                self.planned_request(thread, PlanRequest::Move(goal), caller.clone(), move_options)?;
            match order.perform(None) {
                // The thread got its first files in the meantime.
                Err(FileError::PlanOutdated) => {}
                other => {
                    let executed = other?;
                    return Ok(MoveOutcome { moved: executed.moved, files: executed.files });
                }
            }
        }
    }

    /// The destination of a move, and the file changes in this folder on its route.
    pub(super) fn plan_move(
        &self,
        queries: &Queries<'_>,
        (thread, take): (ThreadId, Option<TakeId>),
        goal: Goal,
        scope: Scope,
    ) -> Result<(PendingOperation, replay::ReplayPlan), FileError> {
        let (row, head) = head_of(queries, thread)?;
        let (here, rules) = (self.here(), self.timeline.rules);
        let view = view_of(queries, thread, &load(queries, head.after)?, take)?;
        // Since the folder was chosen, another take became active, or the take's worktree was created or
        // removed.
        if take.is_some_and(|take| take != view.take) || view.worktree != self.worktree.is_some() {
            return Err(FileError::PlanOutdated);
        }
        let way = match scope {
            Scope::Files => file_destination(queries, row.number, head.version, goal, rules, (here, view))?,
            _ => goal.destination(queries, row.number, head.version, rules, view)?,
        };
        let steps = match goal {
            Goal::Jump(version) => {
                let changes = FolderChanges::since(queries, (row.number, head.version), version, here)?;
                replay::ReplayPlan { passed: changes.passed(), ..replay::ReplayPlan::of(changes.steps()) }
            }
            _ => route::steps_between(queries, row.number, head.version, (&way, scope), here)?,
        };
        let of_thread = |worktree: &WorktreeTake| worktree.thread == thread;
        let open: Vec<TakeId> = queries
            .folders()?
            .into_iter()
            .filter_map(|folder| folder.worktree.filter(of_thread).map(|worktree| worktree.take))
            .collect();
        if route::is_elsewhere(queries, row.number, way.cursor.route(), here, &open)? {
            return Err(match here {
                FolderKind::Project => FileError::Elsewhere,
                FolderKind::Worktree(take) => {
                    let state: ThreadState = load(queries, head.after)?;
                    let name = state.take(queries, take)?.map(|take| take.name).unwrap_or_default();
                    FileError::InProjectFolder(name)
                }
            });
        }
        Ok((PendingOperation::Move { goal, way }, steps))
    }

    /// The kind of this folder.
    pub(super) fn here(&self) -> FolderKind {
        self.worktree.map_or(FolderKind::Project, |worktree| FolderKind::Worktree(worktree.take))
    }
}
