//! Where the files of a thread stand when they move without the conversation.
//!
//! A move of the files alone is a change of its own, made on top of the conversation as it is. So the conversation's
//! position says nothing about the files; the last of such moves does:
//!
//! ```text
//!   1 ── 2* ── 3* ── 4  moved 3 to 2 ── 5  moved 2 to 1          the conversation is at 3, the files at 1
//!              base                     position                 (* changed files)
//! ```
//!
//! From there an undo goes further back, and a redo forward to the base.

use retake_model::history::{self, place_of_move};
use retake_model::operation::{Operation, OperationKind, Place, Version};
use retake_store::{Queries, StoreError};

use super::FileError;
use super::plan::{Here, on_the_way};
use crate::moves::Way;
use crate::{ChangeError, Goal, Rules};

/// Where the files stand, and where a move of them leads. Only steps that changed files count.
pub(super) fn way_of_files(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    goal: Goal,
    rules: Rules,
    here: Here,
) -> Result<(Version, Way), FileError> {
    let log = queries.log(thread);
    let (from, tip) = stand_of_files(queries, thread, head)?;
    let mut place = Place { position: from, tip, ..head.place };
    let (unit, most) = match goal {
        Goal::Jump(_) => {
            let head = Operation { place, ..head.clone() };
            return Ok((from, goal.destination(queries, thread, &head, rules)?));
        }
        Goal::Redo(..) if !history::contains(&log, tip, from)? => {
            return Err(ChangeError::NothingToRedo.into());
        }
        Goal::Undo(unit, most) | Goal::Redo(unit, most) => (unit, most),
    };
    let mut way: Option<Way> = None;
    while way.is_none_or(|way| way.steps < most) {
        let next = match goal {
            Goal::Redo(..) => history::redo(&log, &place, unit)?,
            _ => history::undo(&log, &place, unit)?,
        };
        let Some(to) = next else { break };
        if let (Goal::Undo(..), Some(depth)) = (goal, rules.depth)
            && history::distance(&log, to)? > depth
        {
            return way.map(|way| (from, way)).ok_or_else(|| ChangeError::TooDeep(depth).into());
        }
        let (newer, older) = match goal {
            Goal::Redo(..) => (to.position, place.position),
            _ => (place.position, to.position),
        };
        place = place_of_move(&place, to);
        if !on_the_way(queries, thread, newer, older, here)?.is_empty() {
            way = Some(Way { to, steps: way.map_or(0, |way| way.steps) + 1 });
        }
    }
    let nothing = match goal {
        Goal::Redo(..) => ChangeError::NothingToRedo,
        _ => ChangeError::NothingToUndo,
    };
    Ok((from, way.ok_or(nothing)?))
}

/// Where the files stand, and where a redo of them leads.
fn stand_of_files(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
) -> Result<(Version, Version), StoreError> {
    let (mut base, mut stand) = (head.place.position, None);
    loop {
        let found = queries.operation(thread, base)?.map(|found| found.operation);
        match found {
            Some(Operation { kind: OperationKind::FilesMoved { to, .. }, place, .. }) => {
                stand.get_or_insert(to);
                base = place.parent;
            }
            _ => break,
        }
    }
    Ok(match stand {
        Some(stand) => (stand, base),
        None => (base, head.place.tip),
    })
}
