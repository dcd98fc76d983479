//! Undo, redo and jump with files.

use retake_model::history::Move;
use retake_model::id::{TakeId, ThreadId};
use retake_model::merge::Labels;
use retake_model::object::Additions;
use retake_model::operation::{OperationKind, Version};
use retake_model::replay::{self, OnConflict};
use retake_store::Queries;
use serde::Serialize;

use super::alone::way_of_files;
use super::carry_out::{CarriedOut, Plan};
use super::plan::{Between, Here};
use super::report::{FileReport, of_plan};
use super::{Desk, FileError, Halves, Handling, Present, Session, plan};
use crate::change::{compose_change, compose_move};
use crate::moves::Way;
use crate::{Caller, ChangeError, Goal, Moved, Rules};

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
        let head = self.timeline.look()?.head(thread)?.operation;
        let conversation_only = handling.halves == Halves::Conversation || head.filed.is_none();
        if conversation_only && handling.halves != Halves::Files {
            if handling.preview {
                return Ok(Moment { moved: None, files: None });
            }
            let moved = self.timeline.go(thread, goal, caller)?;
            return Ok(Moment { moved: Some(moved), files: None });
        }
        loop {
            match self.try_go(thread, goal, &caller, handling) {
                // The thread moved on while the plan was made, and the caller did not ask for a version.
                Err(FileError::Change(ChangeError::Conflict { .. })) if caller.expected.is_none() => {}
                other => return other,
            }
        }
    }

    fn try_go(
        &self,
        thread: ThreadId,
        goal: Goal,
        caller: &Caller,
        handling: Handling,
    ) -> Result<Moment, FileError> {
        let session = self.begin()?;
        let present = session.present(thread, caller)?;
        let planned = session.plan_move(thread, goal, &present, handling)?;
        if handling.preview {
            return Ok(Moment { moved: None, files: Some(planned.preview(&present)) });
        }
        let Planned { from, to, steps, plan } = planned;
        let clock = self.timeline.clock.clone();
        let kind = match handling.halves {
            Halves::Files => {
                let paths = plan.replayed.paths.iter().filter(|path| path.present != path.wanted).count();
                if paths == 0 {
                    return Err(FileError::NothingMoves);
                }
                OperationKind::FilesMoved { from, to: to.position, paths: paths as u64 }
            }
            _ => goal.kind(from, to.position),
        };
        let composing = caller.clone();
        let CarriedOut { done, also, report } =
            session.carry_out(thread, &present, plan, caller, move |writing, at| {
                Ok(if kind.moves_only() {
                    compose_move(writing, at, to, kind, &composing, &*clock)?
                } else {
                    let additions = Additions::new(&**writing);
                    let rules = Rules::default();
                    compose_change(writing, at, additions, &at.state, kind, &composing, &*clock, rules)?
                })
            })?;
        let standing = self.timeline.look()?.standing(thread)?;
        let moved = Moved {
            done,
            steps,
            position: standing.position,
            can_undo: standing.can_undo,
            can_redo: standing.can_redo,
            also,
        };
        Ok(Moment { moved: Some(moved), files: Some(report) })
    }
}

struct Planned {
    from: Version,
    to: Move,
    steps: u64,
    plan: Plan,
}

impl Planned {
    fn preview(self, present: &Present) -> FileReport {
        let paths = of_plan(&self.plan.replayed.paths, None);
        FileReport { preview: true, ..FileReport::new(present.id, self.plan.wanted, paths, None) }
    }
}

impl Session<'_> {
    fn plan_move(
        &self,
        thread: ThreadId,
        goal: Goal,
        present: &Present,
        handling: Handling,
    ) -> Result<Planned, FileError> {
        let looking = self.desk.timeline.look()?;
        let queries = looking.queries();
        let row = looking.thread(thread)?;
        let head = looking.head(thread)?.operation;
        let (here, rules) = (self.desk.here(), self.desk.timeline.rules);
        let (from, Way { to, steps }) = match handling.halves {
            Halves::Files => way_of_files(&queries, row.number, &head, goal, rules, here)?,
            _ => (head.place.position, goal.destination(&queries, row.number, &head, rules)?),
        };
        let moved = Between { from, to: to.position, halves: handling.halves };
        let back = plan::steps_between(&queries, row.number, head.version, moved, here)?;
        let open = looking.apart_folders()?.into_iter().filter(|open| open.thread == thread);
        let open: Vec<TakeId> = open.map(|open| open.take).collect();
        if plan::is_elsewhere(&queries, row.number, from, to.position, here, &open)? {
            return Err(FileError::Elsewhere);
        }
        let plan = make_plan(&queries, present, &back, handling.on_conflict)?;
        Ok(Planned { from, to, steps, plan })
    }
}

impl Desk {
    /// Which folder this is.
    pub(super) fn here(&self) -> Here {
        self.apart.map_or(Here::Project, |apart| Here::Apart(apart.take))
    }
}

/// Carries steps over to the present files.
pub(super) fn make_plan(
    queries: &Queries<'_>,
    present: &Present,
    way: &replay::Way,
    on_conflict: OnConflict,
) -> Result<Plan, FileError> {
    let mut additions = Additions::new(queries);
    let replayed = replay::replay(&mut additions, &present.snapshot, way, on_conflict, LABELS)?;
    let wanted = additions.add(&replayed.snapshot);
    Ok(Plan { wanted, replayed, objects: additions.into_new() })
}
