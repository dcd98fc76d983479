//! Undo, redo and jump with files.

use retake_model::id::{TakeId, ThreadId};
use retake_model::intent::Apart;
use retake_model::merge::Labels;
use retake_model::object::load;
use retake_model::replay;
use retake_store::Queries;
use serde::Serialize;

use super::alone::way_of_files;
use super::jump::FolderChanges;
use super::plan::Here;
use super::report::FileReport;
use super::work::Publishing;
use super::{Desk, FileError, Halves, Handling, PlanRequest, route};
use crate::change::head_of;
use crate::moves::view_of;
use crate::{Caller, Goal, Moved};

/// What came of a move of conversation and files.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// What became of the conversation; of a preview, nothing.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// What became of the files; `None` if the thread has none, or only the conversation was to move.
    pub files: Option<FileReport>,
}

/// The texts that name the two sides of a marked conflict.
pub(super) const LABELS: Labels<'static> = Labels { ours: "as it is", theirs: "as it would be" };

impl Desk {
    /// Moves along the log: the conversation, the files, or both.
    pub fn go(
        &self,
        thread: ThreadId,
        goal: Goal,
        caller: Caller,
        handling: Handling,
    ) -> Result<Moment, FileError> {
        loop {
            let order = self.order(thread, PlanRequest::Move(goal), caller.clone(), handling)?;
            match order.perform(None) {
                // The thread got its first files meanwhile.
                Err(FileError::PlanOutdated) => {}
                other => {
                    let executed = other?;
                    return Ok(Moment { moved: executed.moved, files: executed.files });
                }
            }
        }
    }

    /// Where a move leads, and which changes of files in this folder lie on the way.
    pub(super) fn plan_move(
        &self,
        queries: &Queries<'_>,
        (thread, take): (ThreadId, Option<TakeId>),
        goal: Goal,
        halves: Halves,
    ) -> Result<(Publishing, replay::Way), FileError> {
        let (row, head) = head_of(queries, thread)?;
        let (here, rules) = (self.here(), self.timeline.rules);
        let view = view_of(queries, thread, &load(queries, head.after)?, take)?;
        // The take that is meant was the active one, or had its worktree, when the folder was chosen.
        if take.is_some_and(|take| take != view.take) || view.worktree != self.apart.is_some() {
            return Err(FileError::PlanOutdated);
        }
        let way = match halves {
            Halves::Files => way_of_files(queries, row.number, head.version, goal, rules, (here, view))?,
            _ => goal.destination(queries, row.number, head.version, rules, view)?,
        };
        let steps = match goal {
            Goal::Jump(version) if halves == Halves::Both => {
                let changes = FolderChanges::since(queries, (row.number, head.version), version, here)?;
                replay::Way { back: Vec::new(), steps: changes.steps() }
            }
            _ => route::steps_between(queries, row.number, head.version, (&way, halves), here)?,
        };
        let of_thread = |apart: &Apart| apart.thread == thread;
        let open: Vec<TakeId> = queries
            .folders()?
            .into_iter()
            .filter_map(|folder| folder.apart.filter(of_thread).map(|apart| apart.take))
            .collect();
        if route::is_elsewhere(queries, row.number, way.cursor.route(), here, &open)? {
            return Err(FileError::Elsewhere);
        }
        Ok((Publishing::Move { goal, way }, steps))
    }

    /// Which folder this is.
    pub(super) fn here(&self) -> Here {
        self.apart.map_or(Here::Project, |apart| Here::Apart(apart.take))
    }
}
