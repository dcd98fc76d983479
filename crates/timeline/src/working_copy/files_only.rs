//! Position of the files when they move without the conversation.
//!
//! The position of the conversation does not determine the files; the last operation that changed files in the folder
//! does. A move of only the files is itself a change, on top of the conversation, and names the version of the files:
//!
//! ```text
//!   1 ── 2* ── 3* ── 4  moved 3 to 2 ── 5  moved 2 to 1          the conversation is at 3, the files at 1
//!              base                     position                 (* changed files)
//!
//!   1 ── 2* ── 3*    4  undid 3, only the conversation           the conversation is at 2, the files at 3
//!              base                                              (and the position of the files)
//! ```
//!
//! From there an undo moves further back, and a redo forward to the base: the newer one of what the conversation and the
//! files had before the files moved alone.

use retake_model::history::{HistoryCursor, HistoryView, contains, route_between, take_position};
use retake_model::operation::{Operation, OperationKind, Version};
use retake_store::{Queries, StoreError};

use super::FileError;
use super::plan::{FileOperationWalk, FolderKind};
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
    let position = file_position(queries, thread, head, &view, here)?;
    let mut cursor = HistoryCursor::new(&log, head, view)?;
    if let Some((version, base)) = position {
        cursor = cursor.starting_at(&log, version, base)?;
    }
    let counts = |route: &[_]| changes_files(queries, thread, route, here);
    Ok(goal.destination_from(queries, thread, head, rules, cursor, &counts)?)
}

/// The version of the current files, and the change of the take that they left, if they are not those of the
/// conversation.
fn file_position(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    view: &HistoryView,
    here: FolderKind,
) -> Result<Option<(Version, Version)>, StoreError> {
    let log = queries.log(thread);
    let conversation = take_position(&log, head, view.take)?.position;
    let last = last_in_folder(queries, thread, head, here)?;
    let files = take_position(&log, last, view.take)?.position;
    // Redo leads to the newer of both.
    let newer = |conversation: Version, files: Version| -> Result<Version, StoreError> {
        Ok(if contains(&log, conversation, files)? { conversation } else { files })
    };
    let (mut moved, mut version) = (None, files);
    while version != 0 {
        match queries.operation(thread, version)?.map(|found| found.operation) {
            Some(Operation { kind: OperationKind::FilesMoved { from, to, .. }, place, .. }) => {
                let left = take_position(&log, from, view.take)?.position;
                let base = newer(place.parent, left)?;
                moved = Some((moved.map_or(to, |(first, _)| first), base));
                version = place.parent;
            }
            _ => break,
        }
    }
    if moved.is_some() {
        return Ok(moved);
    }
    let differ = changes_files(queries, thread, &route_between(&log, files, conversation)?, here)?;
    Ok(if differ { Some((last, newer(conversation, files)?)) } else { None })
}

/// The last operation that made the files of a folder what they are; edits by hand are no step. `head` if there is
/// none.
fn last_in_folder(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    here: FolderKind,
) -> Result<Version, StoreError> {
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
        let (operation, files) = last_file_operation?;
        let is_note =
            matches!(operation.kind, OperationKind::ExternalEdits { .. } | OperationKind::Saved { .. });
        if here.holds(&files) && !is_note {
            return Ok(operation.version);
        }
    }
    Ok(head)
}
