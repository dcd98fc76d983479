//! Position of the files when they move without the conversation.
//!
//! A move of only the files is itself a change, on top of the conversation. So the position of the conversation does not
//! determine the files; the last of these moves does:
//!
//! ```text
//!   1 ── 2* ── 3* ── 4  moved 3 to 2 ── 5  moved 2 to 1          the conversation is at 3, the files at 1
//!              base                     position                 (* changed files)
//! ```
//!
//! From there an undo moves further back, and a redo forward to the base.

use retake_model::history::{HistoryCursor, HistoryView, take_position};
use retake_model::operation::{Operation, OperationKind, Version};
use retake_store::{Queries, StoreError};

use super::FileError;
use super::plan::FolderKind;
use super::route::changes_files;
use crate::write::moves::Destination;
use crate::{Goal, Rules};

/// Destination of a move of the files from their current position. Only steps that changed files count.
pub(super) fn file_destination(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    goal: Goal,
    rules: Rules,
    (here, view): (FolderKind, HistoryView),
) -> Result<Destination, FileError> {
    let log = queries.log(thread);
    let position = file_position(queries, thread, head, &view)?;
    let mut cursor = HistoryCursor::new(&log, head, view)?;
    if let Some((version, base)) = position {
        cursor = cursor.starting_at(&log, version, base)?;
    }
    let counts = |route: &[_]| changes_files(queries, thread, route, here);
    Ok(goal.destination_from(queries, thread, head, rules, cursor, &counts)?)
}

/// The version of the current files, and the change of the take that they left, if files moved without the conversation
/// since that change.
fn file_position(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    view: &HistoryView,
) -> Result<Option<(Version, Version)>, StoreError> {
    let mut position = None;
    let mut version = take_position(&queries.log(thread), head, view.take)?.position;
    while version != 0 {
        match queries.operation(thread, version)?.map(|found| found.operation) {
            Some(Operation { kind: OperationKind::FilesMoved { to, .. }, place, .. }) => {
                position.get_or_insert(to);
                version = place.parent;
            }
            _ => break,
        }
    }
    Ok(position.map(|position| (position, version)))
}
